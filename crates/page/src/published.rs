//! Shows published tables beside the simulator's figures.

use std::fmt::Write;

use experiments::{Figure, Kind, LogCell, Table};
use sim::Plot;

use crate::document::{Text, cell, document};
use crate::{plot, short};

/// A page with these tables.
pub fn published(tables: &[Table]) -> String {
    let verdicts = || tables.iter().flat_map(|table| &table.verdicts);
    let hold = verdicts().filter(|verdict| verdict.holds).count();
    let mut body = format!(
        "<p>Linux reads files ahead of programs, and orders what it reads from disks. Since 2003, kernel developers \
         have posted measurements of how well that works to their mailing lists. Each table below repeats one such \
         posting on a simulated machine: a row is a workload, a column a version of the kernel's read-ahead or of its \
         order of requests. It prints the posted figure, the simulator's, and how far the two are apart. Some tables \
         compare policies only with each other.</p>\n\
         <p>{hold} of {} claims hold. ~ marks figures that were calibrated: an unknown of the \
         experiment was chosen to match them. By <code>bowwave reproduce --html</code>.</p>\n",
        verdicts().count()
    );
    tables.iter().for_each(|table| body.push_str(&section(table)));
    document("Published tables, simulated", &body)
}

fn section(table: &Table) -> String {
    let mut html = format!("<h2>{}</h2>\n<p>{}</p>\n<ul>\n", Text(table.name), Text(&table.title));
    for verdict in &table.verdicts {
        let (class, mark) = if verdict.holds { ("", "holds") } else { ("bad", "FAILS") };
        let _ = writeln!(html, "<li class=\"{class}\">{mark}: {}</li>", Text(&verdict.claim));
    }
    html.push_str("</ul>\n");
    html.push_str(&plots(&table.plots));
    html.push_str(&log(table).unwrap_or_else(|| figures(table)));
    html.push_str("<details><summary>What was assumed</summary>\n<ul>\n");
    for assumption in &table.assumptions {
        let _ = writeln!(html, "<li>{}</li>", Text(assumption));
    }
    html.push_str("</ul></details>\n");
    html
}

/// Plots, side by side.
pub(crate) fn plots(plots: &[Plot]) -> String {
    if plots.is_empty() {
        return String::new();
    }
    let drawn: String = plots.iter().map(plot::svg).collect();
    format!("<div class=\"plots\">\n{drawn}</div>\n")
}

/// A debug log, line by line.
fn log(table: &Table) -> Option<String> {
    let lines = table.as_log()?;
    let mut html = "<table>\n<tr><th></th>".to_owned();
    for policy in table.policies() {
        let _ = write!(html, "<th>{0}, published</th><th>{0}, simulated</th>", Text(policy));
    }
    html.push_str("</tr>\n");
    for (name, columns) in lines {
        let _ = write!(html, "<tr>{}", cell("", name));
        for LogCell { published, simulated } in columns {
            let class = if published == simulated { "" } else { "bad" };
            let _ = write!(html, "{}", cell("", published.unwrap_or_default()));
            html.push_str(&cell(class, simulated.unwrap_or_default()));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    Some(html)
}

/// One table line for each row, with its columns side by side.
fn figures(table: &Table) -> String {
    let (rows, policies) = (table.rows(), table.policies());
    let mut html = "<table>\n<tr><th></th>".to_owned();
    for policy in &policies {
        let _ = write!(html, "<th class=\"group\" colspan=\"3\">{}</th>", Text(policy));
    }
    html.push_str("</tr>\n<tr><th>row</th>");
    policies
        .iter()
        .for_each(|_| html.push_str("<th>published</th><th>simulated</th><th>error</th>"));
    html.push_str("</tr>\n");
    for (row, unit) in rows {
        let _ = write!(html, "<tr>{}", cell("", format_args!("{row}, {unit}")));
        for policy in &policies {
            let figure = table.figure(row, policy);
            html.push_str(&figure.map_or("<td></td><td></td><td></td>".into(), cells));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    html
}

fn cells(figure: &Figure) -> String {
    let kind = if figure.kind == Kind::Calibrated { "~" } else { "" };
    let error = figure.error().map_or(String::new(), |error| format!("{:+.1} %", error * 100.0));
    let class = if figure.is_off() { "bad" } else { "" };
    [
        cell("", figure.published.map_or("-".into(), short)),
        cell(class, format_args!("{}{kind}", short(figure.simulated))),
        cell(class, error),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use experiments::Verdict;

    use super::*;

    #[test]
    fn a_table_is_shown_with_what_fails_in_red() {
        let figure = |policy: &str, published, simulated| Figure {
            row: "<row>".into(),
            policy: policy.into(),
            unit: "s",
            published,
            simulated,
            kind: Kind::Prediction,
        };
        let table = Table {
            name: "x-2003",
            title: "a & b".into(),
            assumptions: vec!["<none>".into()],
            figures: vec![
                figure("near", Some(10.0), 11.0),
                figure("far", Some(10.0), 16.0),
                figure("new", None, 3.0),
            ],
            verdicts: vec![Verdict { claim: "p < q".into(), holds: false }],
            plots: Vec::new(),
        };
        let html = published(&[table]);
        assert!(html.contains("<td>11</td><td>+10.0 %</td>"), "{html}");
        assert!(html.contains("<td class=\"bad\">16</td><td class=\"bad\">+60.0 %</td>"));
        assert!(html.contains("<li class=\"bad\">FAILS: p &lt; q</li>"));
        assert!(html.contains("0 of 1 claims hold") && html.contains("&lt;none&gt;"));
        assert!(!html.contains("<script") && !html.contains("http"));
    }
}
