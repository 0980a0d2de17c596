use super::*;
fn dev(name: &str) -> Box<dyn Model> {
    device::load(name).unwrap().build(250_000_000_000)
}
fn rnd(count: u64, bytes: u64, span: u64) -> Vec<(u64, u64)> {
    let mut state = 9u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % (span / bytes) * bytes, bytes)
        })
        .collect()
}
#[test]
fn explore() {
    let per = |n: &str, r: &[(u64, u64)], d| timed(&mut *dev(n), r, d) / r.len() as f64 * 1e3;
    for n in ["ide-2003", "st3250820a", "pc-2005"] {
        println!(
            "{n} random4k/100M {:.3} 16k/1G {:.3} 128k/1G {:.3}",
            per(n, &rnd(5000, 4096, 100 << 20), 1),
            per(n, &rnd(5000, 16384, 1 << 30), 1),
            per(n, &rnd(5000, 131072, 1 << 30), 1)
        );
        for s in [4096u64, 16384, 65536, 131072, 2 << 20] {
            println!(
                "  seq {s}: {:.3} ms {:.2} MB/s; back {:.3} ms",
                per(n, &sequential(1600, s), 1),
                s as f64 / 1e3 / per(n, &sequential(1600, s), 1),
                if s <= 65536 { per(n, &backward((100 << 20) / s, s), 1) } else { 0.0 }
            );
        }
        let two: Vec<_> =
            (0..800u64).map(|i| ((i % 2) * (300 << 20) + i / 2 * 131072, 131072)).collect();
        println!("  two streams 128k: {:.3} ms a window", per(n, &two, 1));
    }
    let n = "raid5-pe1750";
    let s = sequential(400, 1 << 20);
    println!(
        "raid 1M {:.3} {:.3} two {:.3} 4; 128k {:.3} two {:.3}",
        per(n, &s, 1),
        per(n, &s, 2),
        per(n, &s, 4),
        per(n, &sequential(2000, 131072), 1),
        per(n, &sequential(2000, 131072), 2)
    );
    println!(
        "raid random 16k/10G: {:.3} {:.3} two {:.3} 8 {:.3} 16",
        per(n, &rnd(3000, 16384, 10 << 30), 1),
        per(n, &rnd(3000, 16384, 10 << 30), 2),
        per(n, &rnd(3000, 16384, 10 << 30), 8),
        per(n, &rnd(3000, 16384, 10 << 30), 16)
    );
    // gap of 2.4 ms
    let mut m = dev(n);
    let (mut now, mut done) = (0, Vec::new());
    let mut busy = 0;
    for i in 0..400u64 {
        m.submit(now, Request { id: i, offset: i << 20, bytes: 1 << 20 });
        let t0 = now;
        while done.len() <= i as usize {
            now = m.next_event().unwrap();
            m.advance(now, &mut done);
        }
        busy += now - t0;
        now += 2_400_000;
    }
    println!("raid 1M with gap {:.3}", busy as f64 / 400e6);
}
