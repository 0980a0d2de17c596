//! Shows replays of one trace side by side.

use sim::replay::{Replay, plots};
use trace::Trace;

use crate::document::{Text, cell, document, head, judged, row, table};
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
    let mut rows = head([
        "policy",
        "read-ahead, KiB",
        "seconds",
        "to the first",
        "stalled, s",
        "needed MB/s",
        "pages read",
        "read per needed",
        "read again",
        "refaults",
        "decisions",
    ]);
    for replay in replays {
        let ratio = replay.seconds_to(&replays[0]);
        let cells = [
            cell(&replay.policy),
            cell(replay.readahead_kb),
            cell(format_args!("{:.3}", replay.seconds)),
            judged(ratio > 1.03, format_args!("{ratio:.2}")),
            cell(format_args!("{:.3}", replay.stalled_s())),
            cell(replay.mb_per_s().map_or("-".into(), short)),
            cell(replay.pages_read),
            cell(format_args!("{:.2}", replay.read_per_needed())),
            cell(replay.read_again),
            cell(replay.refaulted),
            cell(replay.matrix.total().requests),
        ];
        rows += &row(&cells.concat());
    }
    table(&rows)
}

fn accounting(replay: &Replay) -> String {
    let total = replay.matrix.total();
    let counted = total.columns().map(|(name, _)| name);
    let mut rows = head(["cause"].into_iter().chain(counted));
    let causes = replay.matrix.rows().map(|(cause, counts)| (cause.name(), *counts));
    for (cause, counts) in causes.chain([("total", total)]) {
        let counts = counts.columns().map(|(_, count)| cell(count)).concat();
        rows += &row(&(cell(cause) + &counts));
    }
    format!(
        "<details><summary>{}, {} KiB: what each cause of read-ahead came to</summary>\n{}</details>\n",
        Text(&replay.policy),
        replay.readahead_kb,
        table(&rows)
    )
}

#[cfg(test)]
mod tests {
    use sim::replay::{Setup, replay};
    use trace::EXAMPLE;

    use super::*;
    use crate::checks::check;

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
        check(&html);
    }
}
