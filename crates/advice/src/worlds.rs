//! What a trace and a model do not tell: each world is one way it may be.

use sim::replay::{Layout, Pace};

/// A machine on which the load may run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct World {
    /// What is different.
    pub name: &'static str,
    /// The device's latency, as a multiple of what is known.
    pub(crate) latency: f64,
    /// The same of its bandwidth.
    pub(crate) bandwidth: f64,
    /// The same of the memory that may hold files.
    pub(crate) memory: f64,
    pub(crate) layout: Layout,
    /// The pace, if it is not the usual one.
    pub(crate) pace: Option<Pace>,
}

impl World {
    /// Everything is as it is known.
    pub(crate) fn expected(layout: Layout) -> World {
        World {
            name: "as described",
            latency: 1.0,
            bandwidth: 1.0,
            memory: 1.0,
            layout,
            pace: None,
        }
    }
}

/// All worlds, the expected one first, for a device that may be off by this share and for these layouts, the likeliest
/// first.
pub(crate) fn all(device_error: f64, has_durations: bool, layouts: &[Layout]) -> Vec<World> {
    let (more, less) = (1.0 + device_error, 1.0 / (1.0 + device_error));
    let (layout, others) = layouts.split_first().unwrap_or((&Layout::ByDirectory, &[]));
    let expected = World::expected(*layout);
    let mut worlds = vec![
        expected,
        World { name: "a slower device access", latency: more, ..expected },
        World { name: "a faster device access", latency: less, ..expected },
        World { name: "a higher bandwidth", bandwidth: more, ..expected },
        World { name: "a lower bandwidth", bandwidth: less, ..expected },
        // Other programs take their part, as much as this load at most.
        World { name: "half the memory", memory: 0.5, ..expected },
    ];
    worlds.extend(others.iter().map(|layout| World {
        name: "other places of files",
        layout: *layout,
        ..expected
    }));
    if has_durations {
        let pace = Some(Pace::Untraced);
        worlds.push(World { name: "shorter pauses without the tracer", pace, ..expected });
    }
    worlds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_world_differs_from_the_expected_one_in_one_thing() {
        let worlds = all(0.25, true, &Layout::ALL);
        assert_eq!(worlds[0], World::expected(Layout::AsTraced));
        for world in &worlds[1..] {
            let differences = [
                world.latency != 1.0,
                world.bandwidth != 1.0,
                world.memory != 1.0,
                world.layout != Layout::AsTraced,
                world.pace.is_some(),
            ];
            assert_eq!(differences.iter().filter(|it| **it).count(), 1, "{world:?}");
        }
        let fewer = all(0.25, false, &[Layout::AsTraced]);
        assert_eq!(fewer.len(), worlds.len() - 3, "no pauses, and one layout");
        assert_eq!((worlds[1].latency, worlds[2].latency), (1.25, 0.8));
    }
}
