//! Flash drives of 2011: simulated against published throughput at each read-ahead size.

use super::*;

const CURVES: &str = include_str!("../../../../experiments/device-curves-2011.csv");

/// Errors of a drive's simulated throughput at each read size, in percent of the published one.
fn errors(name: &str) -> Vec<f64> {
    CURVES
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(','))
        .map(|line| {
            let mut fields = line.split(',');
            let kib: u64 = fields.next().and_then(|kib| kib.parse().ok()).expect("a size");
            let published: f64 = fields.next().and_then(|mb_s| mb_s.parse().ok()).expect("MB/s");
            let mut drive = device::load(name).expect("in the catalogue").build(1 << 30);
            let seconds = timed(&mut *drive, &[(0, kib << 10)], 1);
            ((kib << 10) as f64 * 1e-6 / seconds / published - 1.0) * 100.0
        })
        .collect()
}

#[test]
fn flash_drives_follow_their_published_curves() {
    // Root mean square and largest error in percent, as stated in the device files.
    let drives = [
        ("intel-x25m-80g", 11, 1.6, 3.7),
        ("sandisk-sata-30g", 9, 1.5, 3.0),
        ("teclast-usb-32g", 9, 0.9, 1.7),
        ("sandisk-cruzer-4g", 9, 1.0, 1.7),
        ("usb-2g", 9, 1.7, 3.5),
        ("m-systems-usb11-64m", 9, 1.7, 4.3),
        ("marvell-sd88-22g", 11, 1.0, 1.4),
        ("sd-card", 8, 0.9, 2.1),
    ];
    for (name, points, most_rms, most) in drives {
        let errors = errors(name);
        assert_eq!(errors.len(), points, "{name}");
        let rms = (errors.iter().map(|e| e * e).sum::<f64>() / points as f64).sqrt();
        let largest = errors.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
        assert!(rms <= most_rms, "{name}: rms {rms:.2} %");
        assert!(largest <= most, "{name}: {errors:.1?}");
    }
}
