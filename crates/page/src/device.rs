//! Shows a measured device: its curve beside its model's.

use sim::{Axis, Plot, Series};

use crate::document::{Text, cell, document};
use crate::{plot, short};

/// What to show about a device.
#[derive(Clone, Debug)]
pub struct DeviceCurve {
    /// The name of the device.
    pub title: String,
    /// Remarks, one sentence each.
    pub sentences: Vec<String>,
    /// Window in KiB, measured MB/s, the model's MB/s.
    pub points: Vec<(u64, f64, Option<f64>)>,
    /// The chosen window in KiB.
    pub chosen_kb: u64,
}

/// Returns the whole page.
pub fn device_curve(curve: &DeviceCurve) -> String {
    let mut body = String::new();
    for sentence in &curve.sentences {
        body += &format!("<p>{}</p>\n", Text(sentence));
    }
    body += &device_svg(curve);
    body += "<table>\n<tr><th>window, KiB</th><th>measured, MB/s</th><th>model, MB/s</th></tr>\n";
    for (kb, measured, model) in &curve.points {
        let chosen = if *kb == curve.chosen_kb { " (chosen)" } else { "" };
        let model = model.map_or_else(String::new, short);
        let cells = [
            cell("", format_args!("{kb}{chosen}")),
            cell("number", short(*measured)),
            cell("number", model),
        ];
        body += &format!("<tr>{}</tr>\n", cells.concat());
    }
    body += "</table>\n";
    document(&curve.title, &body)
}

/// Returns only the plot, as SVG.
pub fn device_svg(curve: &DeviceCurve) -> String {
    let measured = curve.points.iter().map(|(kb, mb_s, _)| (*kb as f64, *mb_s)).collect();
    let model = curve.points.iter().filter_map(|(kb, _, mb_s)| Some((*kb as f64, (*mb_s)?)));
    let chosen = curve.points.iter().filter(|(kb, ..)| *kb == curve.chosen_kb);
    plot::svg(&Plot {
        title: curve.title.clone(),
        x: Axis::log("window, KiB"),
        y: Axis::linear("MB/s"),
        series: vec![
            Series::simulated("measured", measured),
            Series::simulated("model", model.collect()),
            Series::simulated("chosen", chosen.map(|(kb, mb_s, _)| (*kb as f64, *mb_s)).collect()),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_point_and_escapes_the_devices_name() {
        let curve = DeviceCurve {
            title: "<b>disk</b>".into(),
            sentences: vec!["1 < 2".into()],
            points: vec![(4, 7.0, Some(7.1)), (512, 30.0, None)],
            chosen_kb: 512,
        };
        let page = device_curve(&curve);
        assert!(page.contains("&lt;b&gt;disk") && page.contains("1 &lt; 2"));
        assert!(page.contains("512 (chosen)") && page.contains("<svg"));
    }
}
