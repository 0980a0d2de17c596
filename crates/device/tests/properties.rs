//! Properties of every device under every load.

use std::collections::HashMap;

use device::{Completion, DiskSpec, Model, Raid5Spec, Request, Spec};
use proptest::prelude::*;

const SIZE: u64 = 1 << 30;

#[derive(Clone, Debug)]
struct Arrival {
    after_ns: u64,
    offset: u64,
    bytes: u64,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0u64..30_000_000, 0u64..(SIZE - (1 << 20)) / 4096, 1u64..257).prop_map(
        |(after_ns, page, pages)| Arrival { after_ns, offset: page * 4096, bytes: pages * 4096 },
    );
    prop::collection::vec(arrival, 1..80)
}

fn serve(model: &mut dyn Model, arrivals: &[Arrival]) -> (Vec<u64>, Vec<Completion>) {
    let (mut now, mut done, mut submitted) = (0, Vec::new(), Vec::new());
    for (id, arrival) in arrivals.iter().enumerate() {
        now += arrival.after_ns;
        model.advance(now, &mut done);
        model.submit(now, Request { id: id as u64, offset: arrival.offset, bytes: arrival.bytes });
        submitted.push(now);
    }
    while let Some(at) = model.next_event() {
        assert!(at >= now, "time runs backwards, from {now} to {at}");
        now = at;
        model.advance(at, &mut done);
    }
    (submitted, done)
}

/// A device of the catalogue, or a disk or an array with any of the options.
fn spec() -> impl Strategy<Value = Spec> {
    let known = prop::sample::select(device::catalog()).prop_map(|(name, _)| name.to_string());
    let known = known.prop_map(|name| device::load(&name).expect("in the catalogue"));
    prop_oneof![3 => known, 1 => disk(), 1 => array()]
}

fn disk() -> impl Strategy<Value = Spec> {
    let options = (
        prop::option::of(20.0f64..80.0),
        prop::option::of(10.0f64..200.0),
        prop::option::of(0u64..2048),
        any::<(bool, bool, u32)>(),
        (1usize..33, 1usize..6),
    );
    options.prop_map(
        |(inner_mb_s, bus_mb_s, look_ahead_kib, (whole, random, seed), (queue_depth, segments))| {
            let mut spec = device::load("hdd").expect("in the catalogue");
            let disk = spec.disk.as_mut().expect("a disk");
            *disk = DiskSpec {
                media_mb_s: 80.0,
                inner_mb_s,
                bus_mb_s,
                // Small, so that the loads reach the inner tracks.
                capacity_gb: 1.0,
                segment_kib: 1024,
                segments,
                look_ahead_kib,
                reads_whole_tracks: whole,
                random_rotation: random,
                seed: seed.into(),
                queue_depth,
                ..disk.clone()
            };
            spec
        },
    )
}

fn array() -> impl Strategy<Value = Spec> {
    let options = (disk(), 3u64..7, 1u64..300, 0.0f64..3000.0, prop::option::of(20.0f64..200.0));
    options.prop_map(|(member, disks, chunk_kib, controller_us, controller_mb_s)| {
        let disk = member.disk.expect("a disk");
        let raid5 = Raid5Spec {
            disks,
            chunk_kib,
            controller_us,
            controller_busy_us: controller_us / 2.0,
            controller_mb_s,
            disk,
        };
        Spec {
            description: "an array".into(),
            disk: None,
            channels: None,
            raid5: Some(raid5),
            tuned: None,
        }
    })
}

/// A device cannot serve more bytes per second than this under any load.
fn most_bytes_per_s(spec: &Spec) -> f64 {
    let platter = |disk: &DiskSpec| disk.media_mb_s.min(disk.bus_mb_s.unwrap_or(f64::INFINITY));
    let channels = spec.channels.as_ref().map(|channels| channels.bandwidth_mb_s);
    let disk = spec.disk.as_ref().map(platter);
    let raid5 = spec.raid5.as_ref().map(|raid5| {
        let disks = platter(&raid5.disk) * raid5.disks as f64;
        disks.min(raid5.controller_mb_s.unwrap_or(f64::INFINITY))
    });
    channels.or(disk).or(raid5).expect("one of the three") * 1e6
}

/// The load without repeated reads, which a disk could serve from its buffer.
fn without_repetitions(load: &[Arrival]) -> Vec<Arrival> {
    let mut kept: Vec<Arrival> = Vec::new();
    for arrival in load {
        let overlaps = |other: &Arrival| {
            arrival.offset < other.offset + other.bytes
                && other.offset < arrival.offset + arrival.bytes
        };
        if !kept.iter().any(overlaps) {
            kept.push(arrival.clone());
        }
    }
    kept
}

/// Requests close to each other: in both directions, within a few tracks.
fn neighbours() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0u64..20_000_000, 0u64..1024, 1u64..65).prop_map(|(after_ns, page, pages)| {
        Arrival { after_ns, offset: (SIZE / 2) + page * 4096, bytes: pages * 4096 }
    });
    prop::collection::vec(arrival, 1..80)
}

fn load() -> impl Strategy<Value = Vec<Arrival>> {
    prop_oneof![arrivals(), neighbours()]
}

proptest! {
    #[test]
    fn every_request_completes_once_and_not_before_it_can(spec in spec(), load in load()) {
        let mut model = spec.build(SIZE);
        let (submitted, done) = serve(&mut *model, &load);
        let times: HashMap<u64, u64> = done.iter().map(|c| (c.id, c.at)).collect();
        prop_assert_eq!(done.len(), load.len());
        prop_assert_eq!(times.len(), load.len());
        for (id, at) in times {
            prop_assert!(at >= submitted[id as usize]);
        }
        prop_assert!(done.windows(2).all(|pair| pair[0].at <= pair[1].at));
        prop_assert_eq!(model.in_flight(), 0);
        let counters = model.counters();
        prop_assert_eq!(counters.requests, load.len() as u64);
        prop_assert_eq!(counters.bytes, load.iter().map(|arrival| arrival.bytes).sum::<u64>());
    }

    #[test]
    fn the_same_load_takes_the_same_time(spec in spec(), load in load()) {
        let first = serve(&mut *spec.build(SIZE), &load);
        let second = serve(&mut *spec.build(SIZE), &load);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn bandwidth_is_never_exceeded(spec in spec(), load in load()) {
        let load = without_repetitions(&load);
        let (submitted, done) = serve(&mut *spec.build(SIZE), &load);
        let bytes: u64 = load.iter().map(|arrival| arrival.bytes).sum();
        let span = (done[done.len() - 1].at - submitted[0]) as f64 * 1e-9;
        prop_assert!(bytes as f64 <= most_bytes_per_s(&spec) * span * 1.001 + 1.0);
    }

    #[test]
    fn a_description_survives_being_written_and_read(spec in spec()) {
        let text = toml::to_string(&spec).expect("a description can be written");
        prop_assert_eq!(Spec::parse(&text, "written").expect("it can be read"), spec);
    }

    #[test]
    fn nobody_starves_beside_a_stream_that_never_ends(far in 1u64..200_000) {
        const STREAM_DEPTH: u64 = 8;
        let mut disk = device::load("hdd").expect("in the catalogue").build(SIZE);
        let mut done = Vec::new();
        disk.submit(0, Request { id: 0, offset: 0, bytes: 1 << 20 });
        disk.submit(0, Request { id: u64::MAX, offset: far * 4096, bytes: 4096 });
        let mut now = 0;
        for id in 1..500u64 {
            disk.submit(now, Request { id, offset: id << 20, bytes: 1 << 20 });
            if id >= STREAM_DEPTH {
                now = disk.next_event().expect("requests are in flight");
                disk.advance(now, &mut done);
            }
            if done.iter().any(|c| c.id == u64::MAX) {
                prop_assert!(now < 400_000_000, "served after {} ns", now);
                return Ok(());
            }
        }
        prop_assert!(false, "never served");
    }
}

#[test]
fn the_example_of_the_documentation_is_a_device() {
    let page = include_str!("../../../docs/devices.md");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let spec = Spec::parse(example, "docs/devices.md").expect("it is valid");
    let cost = spec.cost();
    assert_eq!((cost.latency_s, cost.concurrency), (0.0009, 1.0));
    spec.build(1 << 30);
}
