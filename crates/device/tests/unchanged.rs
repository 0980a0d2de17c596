//! Figures in docs/ depend on these devices, so they must serve requests exactly as before, to the
//! nanosecond.

use device::{Completion, Request};

const REQUESTS: u64 = 4000;
const SIZE: u64 = 4 << 30;

/// A fixed mix of requests: two streams, one of them backward, and random reads, a few in flight.
struct Mixture {
    state: u64,
    forward: u64,
    backward: u64,
}

impl Mixture {
    fn draw(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) % below
    }

    fn request(&mut self, id: u64) -> Request {
        let bytes = (1 + self.draw(64)) * 4096;
        let offset = match self.draw(4) {
            0 => self.draw((SIZE - (1 << 20)) / 4096) * 4096,
            1 => {
                self.backward -= bytes;
                self.backward
            }
            _ => {
                self.forward += bytes;
                self.forward - bytes
            }
        };
        Request { id, offset, bytes }
    }
}

/// FNV-1a over the id and time of every completion.
fn checksum(name: &str) -> u64 {
    let mut model = device::load(name).expect("in the catalogue").build(SIZE);
    let mut load = Mixture { state: 2003, forward: 0, backward: SIZE / 2 };
    let (mut now, mut done) = (0, Vec::<Completion>::new());
    for id in 0..REQUESTS {
        now += load.draw(2) * load.draw(3_000_000);
        let depth = 1 + load.draw(12) as usize;
        while model.in_flight() >= depth {
            now = now.max(model.next_event().expect("requests are in flight"));
            model.advance(now, &mut done);
        }
        model.advance(now, &mut done);
        let request = load.request(id);
        model.submit(now, request);
    }
    while let Some(at) = model.next_event() {
        model.advance(at, &mut done);
    }
    assert_eq!(done.len() as u64, REQUESTS);
    done.iter()
        .flat_map(|c| [c.id, c.at])
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

#[test]
fn the_first_devices_serve_as_they_did_when_they_were_measured() {
    let pinned = [
        ("hdd", 0x45344e6bb4346761),
        ("hdd-fifo", 0x1db3b982710a6578),
        ("net", 0x5e804c4aef73b068),
        ("ssd", 0xc24f1512ecfbb74f),
        ("sd", 0xd80449ef9781138f),
    ];
    let now = pinned.map(|(name, _)| (name, checksum(name)));
    assert_eq!(now, pinned);
}
