//! Any text is the profile of a device or an error, and what is one is read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tune::profile::Profile;

fuzz_target!(|text: &str| {
    let Ok(profile) = Profile::parse(text) else { return };
    let written = profile.text().expect("it was read");
    assert_eq!(Profile::parse(&written), Ok(profile));
});
