//! Draws a raster of windows, reads and waits.

use analysis::{Layer, Raster};
use sim::Axis;

use crate::plot::{
    COLOURS, FIELD_HEIGHT, LEFT, RIGHT, TOP, begun, grid, legend, legend_line, line, square,
};
use crate::scale::Scale;

/// A raster as an element of a page. The axes begin at zero and end at `ends`.
pub(crate) fn svg(title: &str, raster: &Raster, axes: [&Axis; 2], ends: [f64; 2]) -> String {
    // What lies above hides what is below.
    let mut layers = vec![
        ("brought in by the kernel", &raster.brought, COLOURS[7]),
        ("read", &raster.read, COLOURS[0]),
        ("waited", &raster.waited, COLOURS[1]),
    ];
    layers.retain(|(name, layer, _)| *name == "read" || !layer.runs().is_empty());
    let mut svg = begun(title, legend_line(layers.len()), "", "");
    let [x, y] = ends.map(Scale::up_to);
    grid(&mut svg, axes, [&x, &y]);
    for (index, (name, layer, colour)) in layers.into_iter().enumerate() {
        cells(&mut svg, layer, colour);
        square(&mut svg, colour, index);
        legend(&mut svg, name, index);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Appends the cells of a layer: lines as thick as a row, in a system of coordinates whose units are cells.
fn cells(svg: &mut String, layer: &Layer, colour: &str) {
    let outline: String = layer
        .runs()
        .into_iter()
        .map(|(row, column, count)| format!("M{column} {row}h{count}"))
        .collect();
    let (across, up) = ((RIGHT - LEFT) / layer.columns as f64, FIELD_HEIGHT / layer.rows as f64);
    let bottom = TOP + FIELD_HEIGHT - up / 2.0;
    line(
        svg,
        format_args!(
            "<path class=\"cells\" stroke=\"{colour}\" transform=\"translate({LEFT} {bottom:.3}) \
             scale({across:.4} -{up:.4})\" d=\"{outline}\"/>"
        ),
    );
}
