//! Draws a plot as SVG: axes, lines, points, a legend.

use std::collections::HashSet;
use std::fmt::Write;

use sim::{Axis, Plot, Series, Style};

use crate::document::{STYLE, Text};
use crate::scale::Scale;
use crate::short;

/// Size of the picture and of the plot area in it, in SVG units.
const WIDTH: f64 = 480.0;
pub(crate) const LEFT: f64 = 64.0;
pub(crate) const RIGHT: f64 = WIDTH - 24.0;
pub(crate) const TOP: f64 = 34.0;
pub(crate) const FIELD_HEIGHT: f64 = 250.0;
const BOTTOM: f64 = TOP + FIELD_HEIGHT;

/// Height below the plot area for ticks and axis label. Each line of the legend adds to it.
const BELOW: f64 = 52.0;
const LEGEND_LINE: f64 = 17.0;

/// Width of the legend's samples.
pub(crate) const SAMPLE: f64 = 20.0;

/// Colours that stand out on white and on black, and that most colour-blind people can tell apart.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072b2", "#c58800", "#009e73", "#cc79a7", "#d55e00", "#3a98d0", "#8a8a00", "#888888"];

/// Points drawn per series at most. Of a longer series, every nth one is drawn.
const MOST_POINTS: usize = 4000;

/// Draws a plot as an element of a page.
pub(crate) fn svg(plot: &Plot) -> String {
    drawn(plot, "", "")
}

/// Draws a plot as a file of its own.
pub(crate) fn picture(plot: &Plot) -> String {
    drawn(plot, " xmlns=\"http://www.w3.org/2000/svg\"", &format!("<style>\n{STYLE}</style>\n"))
}

fn drawn(plot: &Plot, attributes: &str, style: &str) -> String {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let bins = plot.series.iter().filter(|series| series.style == Style::Bins);
    let bin_ends = bins.flat_map(|series| &series.points).map(|(x, _)| x * 2.0);
    let x = Scale::new(&plot.x, points().map(|(x, _)| *x).chain(bin_ends));
    let y = Scale::new(&plot.y, points().map(|(_, y)| *y));
    let names = names(plot);
    let has_published = plot.series.iter().any(|series| series.style == Style::Rings);
    let height = legend_line(names.len() + usize::from(has_published));
    let mut svg = begun(&plot.title, height, attributes, style);
    grid(&mut svg, [&plot.x, &plot.y], [&x, &y]);
    for (index, name) in names.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        for one in plot.series.iter().filter(|series| series.name == *name) {
            series(&mut svg, one, colour, &x, &y);
            sample(&mut svg, one.style, colour, index);
        }
        legend(&mut svg, name, index);
    }
    if has_published {
        legend(&mut svg, "rings: published; dots: simulated", names.len());
    }
    svg.push_str("</svg>\n");
    svg
}

/// The beginning of a picture: its size and its title.
pub(crate) fn begun(title: &str, height: f64, attributes: &str, style: &str) -> String {
    format!(
        "<svg{attributes} viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n{style}\
         <text x=\"0\" y=\"18\" font-weight=\"600\">{title}</text>\n",
        title = Text(title)
    )
}

/// The names of the series, in order. What was published and what was simulated have the same name.
fn names(plot: &Plot) -> Vec<&str> {
    let mut seen = HashSet::new();
    plot.series
        .iter()
        .map(|series| series.name.as_str())
        .filter(|name| seen.insert(*name))
        .collect()
}

/// From a place on the horizontal axis, 0 to 1, to the picture's x.
pub(crate) fn across(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}

/// From a place on the vertical axis, 0 to 1, to the picture's y.
pub(crate) fn up(place: f64) -> f64 {
    BOTTOM - place * FIELD_HEIGHT
}

/// Appends a line; writing to a string cannot fail.
pub(crate) fn line(svg: &mut String, text: std::fmt::Arguments) {
    let _ = writeln!(svg, "{text}");
}

/// Appends the ticks and labels of both axes.
pub(crate) fn grid(svg: &mut String, axes: [&Axis; 2], [x, y]: [&Scale; 2]) {
    let [x_label, y_label] = axes.map(|axis| Text(&axis.label));
    for tick in x.ticks() {
        let Some(at) = x.place(tick).map(across) else { continue };
        line(svg, format_args!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
        let below = BOTTOM + 15.0;
        let tick = short(tick);
        line(
            svg,
            format_args!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{tick}</text>"),
        );
    }
    for tick in y.ticks() {
        let Some(at) = y.place(tick).map(up) else { continue };
        line(svg, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
        let (before, middle) = (LEFT - 6.0, at + 4.0);
        let tick = short(tick);
        line(
            svg,
            format_args!(
                "<text x=\"{before}\" y=\"{middle:.1}\" text-anchor=\"end\">{tick}</text>"
            ),
        );
    }
    line(svg, format_args!("<path class=\"axis\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>"));
    let (centre, below) = (across(0.5), BOTTOM + 33.0);
    line(
        svg,
        format_args!("<text x=\"{centre}\" y=\"{below}\" text-anchor=\"middle\">{x_label}</text>"),
    );
    let centre = up(0.5);
    line(
        svg,
        format_args!(
            "<text transform=\"translate(14 {centre}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text>"
        ),
    );
}

fn series(svg: &mut String, series: &Series, colour: &str, x: &Scale, y: &Scale) {
    if series.style == Style::Bins {
        let bars = series.points.iter().filter_map(|(from, amount)| {
            let [left, right] = [across(x.place(*from)?), across(x.place(from * 2.0)?)];
            Some(bar(left, right, up(y.place(*amount)?), BOTTOM))
        });
        return bars_of(svg, colour, bars);
    }
    let every = series.points.len().div_ceil(MOST_POINTS).max(1);
    let places: Vec<(f64, f64)> = series
        .points
        .iter()
        .step_by(every)
        .filter_map(|(right, high)| Some((across(x.place(*right)?), up(y.place(*high)?))))
        .collect();
    draw(svg, series.style, colour, &places);
}

/// The outline of a bar, a little narrower than its bin.
fn bar(left: f64, right: f64, top: f64, bottom: f64) -> String {
    let (left, right) = (left + 0.5, right - 0.5);
    format!("M{left:.1} {bottom:.1}V{top:.1}H{right:.1}V{bottom:.1}z")
}

fn bars_of(svg: &mut String, colour: &str, bars: impl Iterator<Item = String>) {
    let outlines: String = bars.collect();
    line(svg, format_args!("<path fill=\"{colour}\" d=\"{outlines}\"/>"));
}

/// Draws points at these places, joined if the style says so.
fn draw(svg: &mut String, style: Style, colour: &str, places: &[(f64, f64)]) {
    if style == Style::Line && places.len() > 1 {
        let joined: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let joined = joined.join(" ");
        line(
            svg,
            format_args!("<polyline class=\"line\" stroke=\"{colour}\" points=\"{joined}\"/>"),
        );
    }
    for (x, y) in places {
        line(svg, format_args!("{}", point(style, colour, *x, *y)));
    }
}

/// A ring for published figures, a dot for simulated ones; a larger one if no line leads to it.
fn point(style: Style, colour: &str, x: f64, y: f64) -> String {
    let (radius, paint) = match style {
        Style::Line => (2, "fill"),
        Style::Dots | Style::Bins => (3, "fill"),
        Style::Rings => (4, "fill=\"none\" stroke-width=\"1.5\" stroke"),
    };
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" {paint}=\"{colour}\"/>")
}

/// The middle of a line of the legend, from the top.
pub(crate) fn legend_line(index: usize) -> f64 {
    BOTTOM + BELOW + LEGEND_LINE * index as f64
}

/// Appends a sample of a series to its line of the legend.
fn sample(svg: &mut String, style: Style, colour: &str, index: usize) {
    if style == Style::Bins {
        return square(svg, colour, index);
    }
    let across = if style == Style::Line { &[0.0, SAMPLE][..] } else { &[SAMPLE / 2.0] };
    let places: Vec<_> = across.iter().map(|x| (LEFT + x, legend_line(index))).collect();
    draw(svg, style, colour, &places);
}

/// Appends a sample of what is drawn as an area.
pub(crate) fn square(svg: &mut String, colour: &str, index: usize) {
    let (left, middle) = (LEFT + SAMPLE / 2.0, legend_line(index));
    bars_of(svg, colour, [bar(left - 6.0, left + 6.0, middle - 5.0, middle + 5.0)].into_iter());
}

/// Appends a line of the legend.
pub(crate) fn legend(svg: &mut String, text: &str, index: usize) {
    let (right, middle, text) = (LEFT + SAMPLE + 8.0, legend_line(index) + 4.0, Text(text));
    line(svg, format_args!("<text x=\"{right}\" y=\"{middle}\">{text}</text>"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sim::Axis;

    use super::*;
    use crate::checks::{BACKGROUNDS, contrast};

    fn plot(points: Vec<(f64, f64)>, is_log: bool) -> Plot {
        let axis = |label: &str| Axis { label: label.into(), is_log };
        Plot {
            title: "<b>".into(),
            x: axis("<x>"),
            y: axis("<y>"),
            series: vec![
                Series::simulated("<s>", points.clone()),
                Series::published("<p>", points.clone()),
                Series::binned("<b>", points),
            ],
        }
    }

    #[test]
    fn simulated_points_are_joined_by_lines_and_text_is_escaped() {
        let svg = svg(&plot(vec![(1.0, 2.0), (2.0, 4.0)], false));
        assert_eq!(svg.matches("<polyline").count(), 2, "one in the legend");
        for name in ["b", "x", "y", "s", "p"] {
            let text = format!("&lt;{name}&gt;</text>");
            assert!(svg.contains(&text), "{text}");
        }
        assert!(svg.contains("rings: published"));
    }

    #[test]
    fn every_colour_stands_out_in_both_schemes() {
        for (colour, background) in COLOURS.iter().flat_map(|c| BACKGROUNDS.map(|b| (c, b))) {
            // WCAG 2, non-text contrast.
            assert!(contrast(colour, background) >= 3.0, "{colour} on {background}");
        }
    }

    #[test]
    fn a_bar_reaches_from_where_its_bin_begins_to_twice_that() {
        let binned = Plot {
            series: vec![Series::binned("s", vec![(4.0, 1.0), (8.0, 3.0)])],
            ..plot(vec![], true)
        };
        let svg = svg(&binned);
        // Half of the width each, the lower one a quarter as high: axes of powers of two begin at the least value.
        let middle = across(0.5);
        assert!(svg.contains(&format!("H{:.1}V{BOTTOM:.1}z", middle - 0.5)), "{svg}");
        assert!(svg.contains(&format!("M{:.1} {BOTTOM:.1}", middle + 0.5)), "{svg}");
    }

    proptest! {
        #[test]
        fn no_value_gets_into_the_picture_as_no_number(
            points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20),
            is_log: bool,
        ) {
            let svg = svg(&plot(points, is_log));
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
