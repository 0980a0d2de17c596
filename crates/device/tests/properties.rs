//! What holds for every device and every load.

use std::collections::HashMap;

use device::{Completion, Model, Request};
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
        model.advance(at, &mut done);
    }
    (submitted, done)
}

fn device_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(device::catalog().into_iter().map(|(name, _)| name).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn every_request_completes_once_and_not_before_it_can(name in device_name(), load in arrivals()) {
        let spec = device::load(name).expect("in the catalogue");
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
    }

    #[test]
    fn the_same_load_takes_the_same_time(name in device_name(), load in arrivals()) {
        let spec = device::load(name).expect("in the catalogue");
        let first = serve(&mut *spec.build(SIZE), &load);
        let second = serve(&mut *spec.build(SIZE), &load);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn bandwidth_is_never_exceeded(name in device_name(), load in arrivals()) {
        let spec = device::load(name).expect("in the catalogue");
        // A disk may serve one place again from its buffer; the pipes may not cheat.
        prop_assume!(!spec.is_rotational());
        let (submitted, done) = serve(&mut *spec.build(SIZE), &load);
        let bytes: u64 = load.iter().map(|arrival| arrival.bytes).sum();
        let span = (done[done.len() - 1].at - submitted[0]) as f64 * 1e-9;
        let pipe = spec.channels.as_ref().map_or(spec.cost().bandwidth, |c| c.bandwidth_mb_s * 1e6);
        prop_assert!(bytes as f64 <= pipe * span * 1.001 + 1.0);
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
