//! Shows a measured device: its curve beside its model's.

use sim::{Axis, Plot, Series};

use crate::document::{Text, cell, document, head, row, table};
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
    body += &plot::svg(&plot_of(curve));
    let mut rows = head(["window, KiB", "measured, MB/s", "model, MB/s"]);
    for (kb, measured, model) in &curve.points {
        let chosen = if *kb == curve.chosen_kb { " (chosen)" } else { "" };
        let model = model.map_or_else(String::new, short);
        let cells = [cell(format_args!("{kb}{chosen}")), cell(short(*measured)), cell(model)];
        rows += &row(&cells.concat());
    }
    body += &table(&rows);
    document(&curve.title, &body)
}

/// Returns only the plot, as an SVG file.
pub fn device_svg(curve: &DeviceCurve) -> String {
    plot::picture(&plot_of(curve))
}

fn plot_of(curve: &DeviceCurve) -> Plot {
    let measured = curve.points.iter().map(|(kb, mb_s, _)| (*kb as f64, *mb_s)).collect();
    let model = curve.points.iter().filter_map(|(kb, _, mb_s)| Some((*kb as f64, (*mb_s)?)));
    let chosen = curve.points.iter().filter(|(kb, ..)| *kb == curve.chosen_kb);
    Plot {
        title: curve.title.clone(),
        x: Axis::log("window, KiB"),
        y: Axis::linear("MB/s"),
        series: vec![
            Series::simulated("measured", measured),
            Series::simulated("model", model.collect()),
            Series::scattered("chosen", chosen.map(|(kb, mb_s, _)| (*kb as f64, *mb_s)).collect()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check;

    fn curve() -> DeviceCurve {
        DeviceCurve {
            title: "<b>disk</b>".into(),
            sentences: vec!["1 < 2".into()],
            points: vec![(4, 7.0, Some(7.1)), (512, 30.0, None)],
            chosen_kb: 512,
        }
    }

    #[test]
    fn a_page_has_every_point_and_escapes_the_devices_name() {
        let page = device_curve(&curve());
        assert!(page.contains("&lt;b&gt;disk") && page.contains("1 &lt; 2"));
        assert!(page.contains("512 (chosen)") && page.contains("<svg"));
        check(&page);
    }

    #[test]
    fn a_picture_is_a_file_of_its_own() {
        let picture = device_svg(&curve());
        assert!(
            picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="),
            "{picture}"
        );
        assert!(picture.contains(".line {"), "it brings its style");
    }
}
