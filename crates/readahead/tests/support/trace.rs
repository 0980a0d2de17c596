//! A plan as lines of text.

use readahead::{Action, Page, Plan};

/// One line for each request: `cause@page start+pages-look_ahead`. `page` is that of the access.
pub(crate) fn lines(page: Page, plan: &Plan) -> Vec<String> {
    let mark = plan.actions().iter().find_map(|action| match action {
        Action::Mark(mark) => Some(mark.first),
        _ => None,
    });
    let line = |action: &Action| match *action {
        Action::Read { start, pages, cause } => {
            let end = start + pages;
            let within = mark.filter(|mark| (start..end).contains(mark));
            let look_ahead = within.map_or(0, |mark| end - mark);
            Some(format!("{}@{page} {start}+{pages}-{look_ahead}", cause.name()))
        }
        Action::KernelWindow { pages } => Some(format!("kernel-window@{page} {pages}")),
        Action::Mark(_) => None,
    };
    plan.actions().iter().filter_map(line).collect()
}
