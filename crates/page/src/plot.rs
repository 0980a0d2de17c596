//! Draws a plot as SVG: axes, lines, points, a legend.

use std::collections::HashSet;
use std::fmt::Write;

use sim::{Plot, Series, Style};

use crate::document::{STYLE, Text};
use crate::scale::Scale;
use crate::short;

/// Size of the picture and of the plot area in it, in SVG units.
const WIDTH: f64 = 480.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 34.0;
const FIELD_HEIGHT: f64 = 250.0;
const BOTTOM: f64 = TOP + FIELD_HEIGHT;

/// Height below the plot area for ticks and axis label. Each line of the legend adds to it.
const BELOW: f64 = 52.0;
const LEGEND_LINE: f64 = 17.0;

/// Width of the legend's samples.
const SAMPLE: f64 = 20.0;

/// Colours that stand out on white and on black, and that most colour-blind people can tell apart.
const COLOURS: [&str; 8] =
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
    let x = Scale::new(&plot.x, points().map(|(x, _)| *x));
    let y = Scale::new(&plot.y, points().map(|(_, y)| *y));
    let names = names(plot);
    let has_published = plot.series.iter().any(|series| series.style == Style::Rings);
    let height = legend_line(names.len() + usize::from(has_published));
    let mut svg = format!(
        "<svg{attributes} viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n{style}\
         <text x=\"0\" y=\"18\" font-weight=\"600\">{title}</text>\n",
        title = Text(&plot.title)
    );
    grid(&mut svg, plot, &x, &y);
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

/// The names of the series, in order. What was published and what was simulated have the same name.
fn names(plot: &Plot) -> Vec<&str> {
    let mut seen = HashSet::new();
    plot.series
        .iter()
        .map(|series| series.name.as_str())
        .filter(|name| seen.insert(*name))
        .collect()
}

fn across(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}

fn up(place: f64) -> f64 {
    BOTTOM - place * FIELD_HEIGHT
}

/// Appends a line; writing to a string cannot fail.
fn line(svg: &mut String, text: std::fmt::Arguments) {
    let _ = writeln!(svg, "{text}");
}

fn grid(svg: &mut String, plot: &Plot, x: &Scale, y: &Scale) {
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
    let label = Text(&plot.x.label);
    line(
        svg,
        format_args!("<text x=\"{centre}\" y=\"{below}\" text-anchor=\"middle\">{label}</text>"),
    );
    let (centre, label) = (up(0.5), Text(&plot.y.label));
    line(
        svg,
        format_args!(
            "<text transform=\"translate(14 {centre}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
        ),
    );
}

fn series(svg: &mut String, series: &Series, colour: &str, x: &Scale, y: &Scale) {
    let every = series.points.len().div_ceil(MOST_POINTS).max(1);
    let places: Vec<(f64, f64)> = series
        .points
        .iter()
        .step_by(every)
        .filter_map(|(right, high)| Some((across(x.place(*right)?), up(y.place(*high)?))))
        .collect();
    draw(svg, series.style, colour, &places);
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
        Style::Dots => (3, "fill"),
        Style::Rings => (4, "fill=\"none\" stroke-width=\"1.5\" stroke"),
    };
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" {paint}=\"{colour}\"/>")
}

/// The middle of a line of the legend, from the top.
fn legend_line(index: usize) -> f64 {
    BOTTOM + BELOW + LEGEND_LINE * index as f64
}

/// Appends a sample of a series to its line of the legend.
fn sample(svg: &mut String, style: Style, colour: &str, index: usize) {
    let across = if style == Style::Line { &[0.0, SAMPLE][..] } else { &[SAMPLE / 2.0] };
    let places: Vec<_> = across.iter().map(|x| (LEFT + x, legend_line(index))).collect();
    draw(svg, style, colour, &places);
}

fn legend(svg: &mut String, text: &str, index: usize) {
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
                Series::published("<p>", points),
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
