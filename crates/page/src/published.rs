//! Shows published tables beside the simulator's figures.

use std::fmt::Write;

use experiments::{Census, Figure, Kind, LogCell, Table, Verdict};
use sim::Plot;

use crate::document::{Text, cell, document, grouped_head, head, judged, row, table};
use crate::{plot, short};

/// For somebody who does not know the postings.
const INTRODUCTION: &str = include_str!("introduction.html");

/// A page with these tables.
pub fn published(tables: &[Table]) -> String {
    let mut body = INTRODUCTION.to_owned();
    body += &contents(tables);
    tables.iter().for_each(|table| body.push_str(&section(table)));
    body += "<p>Written by <code>bowwave reproduce --html</code>.</p>\n";
    document("Published read-ahead experiments, simulated", &body)
}

/// Every table with a link, and how near the simulator comes.
fn contents(tables: &[Table]) -> String {
    let mut html = "<h2>Tables</h2>\n<ul>\n".to_owned();
    for Table { name, title, verdicts, .. } in tables {
        let held = held(verdicts.iter());
        let _ = writeln!(html, "<li><a href=\"#{name}\">{name}</a>: {} ({held})</li>", Text(title));
    }
    let held = held(tables.iter().flat_map(|table| &table.verdicts));
    let _ = writeln!(html, "</ul>\n<p>Together, {held}.</p>");
    html + &censuses(tables)
}

/// How many claims hold.
fn held<'a>(verdicts: impl Iterator<Item = &'a Verdict> + Clone) -> String {
    let hold = verdicts.clone().filter(|verdict| verdict.holds).count();
    format!("{hold} of {} claims hold", verdicts.count())
}

/// How near the simulator comes to the published figures, table by table.
fn censuses(tables: &[Table]) -> String {
    let censuses = Census::of_each(tables);
    if censuses.is_empty() {
        return String::new();
    }
    let mut rows = head(["figures"].into_iter().chain(Census::COLUMNS));
    for (name, census) in censuses {
        let cells: String = census.cells().iter().map(cell).collect();
        rows += &row(&(cell(name) + &cells));
    }
    "<p>How near the simulator comes: how many figures were published; of these, how many must be exact (and are), \
     were calibrated, and were predicted; of the predicted ones, how many are within 15 % and 30 % of the published \
     figure, and how many are off by more than 60 %. Signs: where a published figure differs by 3 % or more from the \
     first column of its row, how often the simulated one differs in the same direction.</p>\n"
        .to_owned()
        + &table(&rows)
}

fn section(table: &Table) -> String {
    let name = table.name;
    let mut html = format!("<h2 id=\"{name}\"><a href=\"#{name}\">{name}</a></h2>\n");
    let _ = writeln!(html, "<p>{}</p>", Text(&table.title));
    html += &plots(&table.plots);
    html += &log(table).unwrap_or_else(|| figures(table));
    html.push_str("<ul>\n");
    for verdict in &table.verdicts {
        let mark = if verdict.holds { "holds:" } else { "<span class=\"bad\">FAILS:</span>" };
        let _ = writeln!(html, "<li>{mark} {}</li>", Text(&verdict.claim));
    }
    html.push_str("</ul>\n<details><summary>What was assumed</summary>\n<ul>\n");
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
fn log(of: &Table) -> Option<String> {
    let lines = of.as_log()?;
    let mut rows = grouped_head("line", &of.policies(), &["published", "simulated"]);
    for (name, columns) in lines {
        let cells = columns.into_iter().flat_map(|LogCell { published, simulated }| {
            let is_bad = published != simulated;
            [cell(published.unwrap_or_default()), judged(is_bad, simulated.unwrap_or_default())]
        });
        rows += &row(&(cell(name) + &cells.collect::<String>()));
    }
    Some(
        "<p>Each line of the log, as start+asked=read: from which page on, how many pages the policy asked for, \
         and how many of them were read. A page has 4 KiB.</p>\n"
            .to_owned()
            + &table(&rows),
    )
}

/// One table line for each row, with its columns side by side.
fn figures(of: &Table) -> String {
    let policies = of.policies();
    let is_published = of.figures.iter().any(|figure| figure.published.is_some());
    let mut rows = match is_published {
        true => grouped_head("row", &policies, &["published", "simulated", "error"]),
        false => head(["row"].iter().chain(&policies)),
    };
    for (name, unit) in of.rows() {
        let cells = policies.iter().map(|policy| match (of.figure(name, policy), is_published) {
            (Some(figure), true) => compared(figure),
            (Some(figure), false) => cell(short(figure.simulated)),
            (None, true) => cell("").repeat(3),
            (None, false) => cell(""),
        });
        rows += &row(&(cell(format_args!("{name}, {unit}")) + &cells.collect::<String>()));
    }
    table(&rows)
}

/// The published figure, the simulated one, the error.
fn compared(figure: &Figure) -> String {
    let kind = if figure.kind == Kind::Calibrated { "~" } else { "" };
    let error = figure.error().map_or(String::new(), |error| format!("{:+.0} %", error * 100.0));
    [
        cell(figure.published.map_or("-".into(), short)),
        judged(figure.is_off(), format_args!("{}{kind}", short(figure.simulated))),
        judged(figure.is_off(), error),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use sim::{Axis, Series};

    use super::*;
    use crate::checks::check;

    fn figure(row: &str, policy: &str, published: Option<f64>, simulated: f64) -> Figure {
        Figure {
            row: row.into(),
            policy: policy.into(),
            unit: "s",
            published,
            simulated,
            kind: Kind::Prediction,
        }
    }

    fn table(name: &'static str, figures: Vec<Figure>) -> Table {
        Table {
            name,
            title: "a & b".into(),
            assumptions: vec!["<none>".into()],
            figures,
            verdicts: vec![Verdict { claim: "p < q".into(), holds: false }],
            plots: vec![Plot {
                title: "a plot".into(),
                x: Axis::linear("x"),
                y: Axis::log("y"),
                series: vec![Series::published("p", vec![(1.0, 2.0), (2.0, 3.0)])],
            }],
        }
    }

    #[test]
    fn a_table_is_shown_with_what_fails_in_red() {
        let html = published(&[table(
            "x-2003",
            vec![
                figure("<row>", "near", Some(10.0), 11.0),
                figure("<row>", "far", Some(10.0), 16.0),
                figure("<row>", "new", None, 3.0),
            ],
        )]);
        assert!(html.contains("<td>11</td><td>+10 %</td>"), "{html}");
        assert!(html.contains("<td class=\"bad\">16</td><td class=\"bad\">+60 %</td>"));
        assert!(html.contains("<li><span class=\"bad\">FAILS:</span> p &lt; q</li>"));
        assert!(html.contains("0 of 1 claims hold") && html.contains("&lt;none&gt;"));
        check(&html);
    }

    #[test]
    fn tables_of_every_kind_have_links_and_a_census_if_anything_was_published() {
        let log = ["line 1 start", "line 1 asked", "line 1 read"];
        let tables = [
            table("log", log.map(|row| figure(row, "stock", Some(4.0), 5.0)).to_vec()),
            table("published", vec![figure("a", "stock", Some(4.0), 4.0)]),
            table("ours", vec![figure("a", "stock", None, 4.5), figure("b", "new", None, 5.5)]),
        ];
        let html = published(&tables);
        check(&html);
        assert!(html.contains("<td>4+4=4</td><td class=\"bad\">5+5=5</td>"), "{html}");
        assert!(html.contains("<th>row</th><th>stock</th><th>new</th>"), "nothing to compare with");
        assert!(html.contains("<td>a, s</td><td>4.50</td><td></td>"));
        for name in ["log", "published", "ours"] {
            assert!(html.contains(&format!("<a href=\"#{name}\">")), "{name}");
        }
        assert!(html.contains("<td>all but demo</td><td>4</td>"), "{html}");
        assert!(!published(&tables[2..]).contains("calibrated</th>"), "nothing to count");
    }
}
