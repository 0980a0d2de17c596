//! A file system can be unmounted as soon as its last reader has ended, although bowwave was reading ahead for it.
//!
//! Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;
mod trial;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use managed::Daemon;
use own::Own;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use trial::Random;

const FILE_BYTES: u64 = 96 << 20;

/// Programs that read in ways of which bowwave makes a lot.
const READERS: [&str; 3] = [
    "import os,sys\nf=os.open(sys.argv[1]+'/file',0)\nwhile os.read(f,65536): pass",
    "import os,sys\nf=os.open(sys.argv[1]+'/file',0)\nfor at in range(95<<20,0,-65536): os.pread(f,65536,at)",
    "import os,sys\nfor folder,_,files in os.walk(sys.argv[1]):\n for name in files: open(folder+'/'+name,'rb').read(65536)",
];

fn main_of(device: &str, is_managed: bool) -> Option<(u64, u64, Duration)> {
    managed::possible()?;
    let (_alone, lab) = stage::lab("unmounting", device, 256 << 20, "ext4");
    let state = stage::state();
    lab.set_fast(true).expect("fast");
    for folder in 0..20 {
        let tree = lab.mount_point().join(format!("tree/{folder}"));
        fs::create_dir_all(&tree).expect("a folder");
        for file in 0..40 {
            fs::write(tree.join(file.to_string()), vec![7; 20 << 10]).expect("a file");
        }
    }
    fs::write(lab.mount_point().join("file"), vec![5; FILE_BYTES as usize]).expect("the file");
    lab.evict().expect("evicted");
    lab.set_fast(false).expect("slow");
    let daemon = is_managed.then(|| {
        Daemon::begin(&mut managed::daemon(&lab, state.path(), &["--drop-behind", "always"]))
    });
    let (rounds, mut busy, mut longest) = (24, 0, Duration::ZERO);
    let mut random = Random(trial::seed());
    for round in 0..rounds {
        let script = READERS[round as usize % READERS.len()];
        let mut reader = Command::new("python3");
        reader.args(["-c", script]).arg(lab.mount_point()).stdout(Stdio::null());
        let mut reader = Own::start(&mut reader);
        thread::sleep(Duration::from_millis(100 + random.below(400)));
        let _ = reader.kill();
        reader.wait().expect("it ends");
        let begun = Instant::now();
        let mut is_first = true;
        loop {
            match unmount(lab.mount_point(), UnmountFlags::empty()) {
                Ok(()) => break,
                Err(Errno::BUSY) => {
                    busy += u64::from(is_first);
                    is_first = false;
                    thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("{error}"),
            }
        }
        if !is_first {
            longest = longest.max(begun.elapsed());
            println!("round {round}: busy for {:?}", begun.elapsed());
        }
        remount(lab.block_device(), &lab.mount_point());
    }
    if let Some(daemon) = daemon {
        println!("{}", daemon.end());
    }
    Some((rounds, busy, longest))
}

fn remount(device: &Path, folder: &Path) {
    mount(device, folder, c"ext4", MountFlags::empty(), None).expect("mounted again");
}

#[test]
fn measure() {
    for device in ["net", "hdd", "usb-2g"] {
        for is_managed in [false, true] {
            let (rounds, busy, longest) = main_of(device, is_managed).expect("live");
            println!("{device} managed {is_managed}: {busy} of {rounds} busy, longest {longest:?}");
        }
    }
}
