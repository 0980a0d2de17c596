//! Shows replays of one trace side by side.

use std::fmt::Write;

use sim::replay::{Replay, plots};
use sim::trace::Trace;

use crate::document::{Text, cell, document};
use crate::published;
use crate::short;

/// A page of replays; `about` names the trace and the machine.
pub fn replays(about: &str, trace: &Trace, replays: &[Replay]) -> String {
    let mut body = format!("<p>{}</p>\n", Text(about));
    body.push_str(&summary(replays));
    body.push_str(&published::plots(&plots(trace, replays)));
    replays.iter().for_each(|replay| body.push_str(&accounting(replay)));
    document("A trace replayed", &body)
}

fn summary(replays: &[Replay]) -> String {
    let mut html = "<table>\n<tr><th>policy</th><th>read-ahead, KiB</th><th>seconds</th>\
         <th>to the first</th><th>stalled, s</th><th>needed MB/s</th><th>pages read</th>\
         <th>read per needed</th><th>read again</th><th>refaults</th><th>decisions</th></tr>\n"
        .to_owned();
    for replay in replays {
        let ratio = replay.seconds_to(&replays[0]);
        let cells = [
            cell("", &replay.policy),
            cell("", replay.readahead_kb),
            cell("", format_args!("{:.3}", replay.seconds)),
            cell(if ratio > 1.03 { "bad" } else { "" }, format_args!("{ratio:.2}")),
            cell("", format_args!("{:.3}", replay.stalled_s())),
            cell("", replay.mb_per_s().map_or("-".into(), short)),
            cell("", replay.pages_read),
            cell("", format_args!("{:.2}", replay.read_per_needed())),
            cell("", replay.read_again),
            cell("", replay.refaulted),
            cell("", replay.matrix.total().requests),
        ];
        let _ = writeln!(html, "<tr>{}</tr>", cells.concat());
    }
    html.push_str("</table>\n");
    html
}

fn accounting(replay: &Replay) -> String {
    let total = replay.matrix.total();
    let heads = total.columns().map(|(name, _)| format!("<th>{name}</th>"));
    let mut html = format!(
        "<details><summary>{}, {} KiB: what each cause of read-ahead came to</summary>\n<table>\n\
         <tr><th>cause</th>{}</tr>\n",
        Text(&replay.policy),
        replay.readahead_kb,
        heads.concat()
    );
    let rows = replay.matrix.rows().map(|(cause, row)| (cause.name(), *row));
    for (cause, row) in rows.chain([("total", total)]) {
        let counts = row.columns().map(|(_, count)| cell("", count)).concat();
        let _ = writeln!(html, "<tr>{}{counts}</tr>", cell("", cause));
    }
    html.push_str("</table></details>\n");
    html
}

#[cfg(test)]
mod tests {
    use sim::replay::{Setup, replay};
    use sim::trace::EXAMPLE;

    use super::*;

    #[test]
    fn a_page_of_the_example_has_its_figures_plots_and_accounting() {
        let trace = Trace::parse(EXAMPLE.as_bytes()).expect("it is one");
        let setup = Setup { keeps_log: true, ..Setup::default() };
        let of = |policy| replay(&trace, policy, &setup).expect("it is known");
        let html = replays("<example>", &trace, &["linux-6", "adaptive"].map(of));
        assert!(html.contains("&lt;example&gt;"));
        assert!(html.contains("Windows in /srv/log") && html.contains("When processes end"));
        assert_eq!(html.matches("<details>").count(), 2);
        for event in ["look-ahead hits", "late", "thrashed", "shrinks", "to the end"] {
            assert_eq!(html.matches(&format!("<th>{event}</th>")).count(), 2, "{event}");
        }
        assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    }
}
