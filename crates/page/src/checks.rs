//! What every page must be, checked without a browser.

use std::collections::HashSet;

use crate::document::STYLE;

/// Panics if a page does not close its elements, has an id twice or a link to none, uses a class without a style,
/// fetches anything, or has a table that widens the page.
pub(crate) fn check(page: &str) {
    check_nesting(page);
    let ids: Vec<&str> = attributes(page, "id").collect();
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "twice: {ids:?}");
    for link in attributes(page, "href") {
        assert!(unique.contains(&link[1..]) && link.starts_with('#'), "{link} leads nowhere");
    }
    for class in attributes(page, "class") {
        assert!(STYLE.contains(&format!(".{class} ")), "the class {class:?} has no style");
    }
    for fetching in ["<script", "<link", "src=", "url(", "@import", "http"] {
        assert!(!page.contains(fetching), "{fetching}");
    }
    let scrolling = page.matches("<div class=\"scroll\" tabindex=\"0\"><table>").count();
    assert_eq!(page.matches("<table").count(), scrolling, "a table does not scroll");
}

/// Panics unless each element is closed where it was opened.
fn check_nesting(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.split_whitespace().next().expect("a tag has a name");
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed after {open:?}");
        } else if !tag.ends_with('/') && !["!DOCTYPE", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0], "not closed");
}

/// The values of an attribute.
fn attributes<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let values: Vec<&str> = page.split(&start).skip(1).collect();
    values.into_iter().filter_map(|value| Some(value.split_once('"')?.0))
}

/// The contrast of two colours, `#rgb` or `#rrggbb`, from 1 to 21 (WCAG 2, "contrast ratio").
pub(crate) fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: &str) -> f64 {
    let digits: Vec<u32> = colour.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let channels: Vec<u32> = match digits.len() {
        3 => digits.iter().map(|digit| digit * 17).collect(),
        6 => digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect(),
        _ => panic!("no colour: {colour}"),
    };
    let linear = channels.iter().map(|channel| match f64::from(*channel) / 255.0 {
        value if value <= 0.04045 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    });
    linear.zip([0.2126, 0.7152, 0.0722]).map(|(value, weight)| value * weight).sum()
}

/// What browsers paint behind a page in the light and in the dark scheme; Chromium's dark is the lightest.
pub(crate) const BACKGROUNDS: [&str; 2] = ["#fff", "#121212"];

#[test]
fn each_scheme_defines_every_property_that_the_style_uses_and_text_can_be_read() {
    let blocks: Vec<&str> = STYLE.split(":root {").skip(1).collect();
    let [light, dark] = blocks[..] else { panic!("{} schemes", blocks.len()) };
    let schemes = [light, dark].map(|block| block.split_once('}').expect("it ends").0);
    assert!(STYLE.contains("@media (prefers-color-scheme: dark) { :root {"));
    let used = STYLE.split("var(").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    for property in used {
        for scheme in schemes {
            assert!(scheme.contains(&format!("{property}: ")), "{property} in {scheme}");
        }
    }
    for (scheme, background) in schemes.iter().zip(BACKGROUNDS) {
        let (_, red) = scheme.split_once("--bad: ").expect("defined");
        let red = red.split_once(';').expect("a declaration").0;
        assert!(contrast(red, background) >= 4.5, "{red} on {background}");
    }
}

#[test]
fn what_a_page_must_not_be_is_found() {
    let bad = [
        "<p><b></p></b>",
        "<p>",
        "<p id=\"a\"></p><p id=\"a\"></p>",
        "<a href=\"#a\"></a>",
        "<p class=\"none\"></p>",
        "<table></table>",
    ];
    for page in bad {
        assert!(std::panic::catch_unwind(|| check(page)).is_err(), "{page}");
    }
    check(
        "<p id=\"a\"><a href=\"#a\"></a></p><div class=\"scroll\" tabindex=\"0\"><table></table></div>",
    );
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
}
