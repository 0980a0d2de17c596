//! Draws a plot as SVG: axes, lines, points, a legend.

use std::fmt::Write;

use sim::{Plot, Series, Style};

use crate::document::Text;
use crate::scale::Scale;
use crate::short;

/// Size of the picture and of the plot area in it, in SVG units.
const WIDTH: f64 = 560.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 34.0;
const FIELD_HEIGHT: f64 = 250.0;
const BOTTOM: f64 = TOP + FIELD_HEIGHT;

/// Height below the plot area for ticks and axis label. Each line of the legend adds to it.
const BELOW: f64 = 46.0;
const LEGEND_LINE: f64 = 17.0;

/// Colours that stand out on white and black, and that most colour-blind people can tell apart.
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a8a00", "#888888"];

/// Points drawn per series at most. Of a longer series, every nth one is drawn.
const MOST_POINTS: usize = 4000;

/// Draws a plot.
pub(crate) fn svg(plot: &Plot) -> String {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let x = Scale::new(&plot.x, points().map(|(x, _)| *x));
    let y = Scale::new(&plot.y, points().map(|(_, y)| *y));
    let height = BOTTOM + BELOW + LEGEND_LINE * plot.series.len() as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <text x=\"{LEFT}\" y=\"18\" font-weight=\"600\">{title}</text>\n",
        title = Text(&plot.title)
    );
    grid(&mut svg, plot, &x, &y);
    let mut names: Vec<&str> = Vec::new();
    for (index, one) in plot.series.iter().enumerate() {
        // A published series has the colour of its simulated one.
        let known = names.iter().position(|name| *name == one.name);
        let colour = COLOURS[known.unwrap_or(names.len()) % COLOURS.len()];
        if known.is_none() {
            names.push(&one.name);
        }
        series(&mut svg, one, colour, &x, &y);
        legend(&mut svg, one, colour, index);
    }
    svg.push_str("</svg>\n");
    svg
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
    if series.style == Style::Line && places.len() > 1 {
        let joined: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let joined = joined.join(" ");
        line(
            svg,
            format_args!("<polyline class=\"line\" stroke=\"{colour}\" points=\"{joined}\"/>"),
        );
    }
    for (x, y) in places {
        line(svg, format_args!("{}", point(series, colour, x, y)));
    }
}

/// A ring for published figures, a dot for simulated ones.
fn point(series: &Series, colour: &str, x: f64, y: f64) -> String {
    let at = format!("cx=\"{x:.1}\" cy=\"{y:.1}\"");
    if series.style == Style::Rings {
        format!("<circle {at} r=\"4\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>")
    } else {
        format!("<circle {at} r=\"2\" fill=\"{colour}\"/>")
    }
}

fn legend(svg: &mut String, series: &Series, colour: &str, index: usize) {
    let at = BOTTOM + BELOW + LEGEND_LINE * index as f64;
    line(svg, format_args!("{}", point(series, colour, LEFT + 4.0, at)));
    let (right, middle, name) = (LEFT + 14.0, at + 4.0, Text(&series.name));
    let source = if series.style == Style::Rings { ", published" } else { "" };
    line(svg, format_args!("<text x=\"{right}\" y=\"{middle}\">{name}{source}</text>"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sim::Axis;

    use super::*;

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
        assert_eq!(svg.matches("<polyline").count(), 1);
        for text in ["&lt;b&gt;", "&lt;x&gt;", "&lt;y&gt;", "&lt;s&gt;", "&lt;p&gt;, published"] {
            assert!(svg.contains(text), "{text}");
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
