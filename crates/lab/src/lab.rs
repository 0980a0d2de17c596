//! Making a lab, using it, removing it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use device::Spec;
use linux::meminfo;

use crate::claim::Claim;
use crate::control::Order;
use crate::error::LabError;
use crate::fault::Fault;
use crate::layers;
use crate::remove;
use crate::state::{self, State};
use crate::status::Status;

/// What to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name, part of its folder's path.
    pub name: String,
    /// A device of the catalogue, or a TOML file.
    pub device: String,
    /// Size of the device.
    pub size_bytes: u64,
    /// `ext4`, `xfs`, `btrfs`, or `none` for the bare device.
    pub fs_type: String,
    /// The I/O scheduler; if `None`, the kernel's choice for a new loop device, which is none.
    pub scheduler: Option<String>,
    /// The executable whose `lab serve` is the server; this very one if `None`.
    pub server: Option<PathBuf>,
    /// Microseconds by which to delay replies on average; 0 except in tests.
    pub inject_late_us: f64,
    /// Faults while the delays are on.
    pub faults: Vec<Fault>,
}

/// Bytes of memory that the machine needs besides the image.
const SPARE_MEMORY_BYTES: u64 = 512 << 20;

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    state: State,
}

impl Lab {
    /// Makes a lab. After an error, removes everything it has made.
    ///
    /// # Errors
    /// See [`LabError`].
    pub fn up(options: &Options) -> Result<Lab, LabError> {
        Self::up_unless(options, || false)
    }

    /// Makes a lab, unless `is_stopped` returns `true` between two steps.
    ///
    /// # Errors
    /// [`LabError::Stopped`] in that case, after everything was removed; otherwise as [`up`](Self::up).
    pub fn up_unless(options: &Options, is_stopped: impl Fn() -> bool) -> Result<Lab, LabError> {
        let spec = device::load(&options.device)?;
        state::check_name(&options.name)?;
        check_privilege()?;
        layers::check_file_system(&options.fs_type)?;
        options.faults.iter().try_for_each(|fault| fault.check(options.size_bytes))?;
        check_memory(options.size_bytes)?;
        let mut state = State {
            name: options.name.clone(),
            device: options.device.clone(),
            spec,
            size_bytes: options.size_bytes,
            server_pid: 0,
            block_device: None,
        };
        let claim = Claim::make(&options.name)?;
        clear_leftover(&claim)?;
        remove::clear_dead();
        match build(&mut state, options, is_stopped) {
            Ok(()) => Ok(Lab { state }),
            Err(error) => {
                // Report the first error, not this one.
                let _ = remove::clear(&claim);
                Err(error)
            }
        }
    }

    /// Finds a lab that is up, or whose `state.json` at least is there.
    ///
    /// # Errors
    /// [`LabError::Unknown`] if there is none of that name, [`LabError::HalfMade`] or [`LabError::Damaged`] if its
    /// `state.json` is missing or unreadable, [`LabError::NotRoot`] if that cannot be seen.
    pub fn attach(name: &str) -> Result<Lab, LabError> {
        Ok(Lab { state: State::load(name)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The device's description.
    pub fn spec(&self) -> &Spec {
        &self.state.spec
    }

    /// The folder for the file system.
    pub fn mount_point(&self) -> PathBuf {
        self.state.mount_point()
    }

    /// Whether a file system is mounted there. Otherwise only the block device exists.
    pub fn is_mounted(&self) -> bool {
        layers::is_mounted(&self.mount_point())
    }

    /// The block device; empty while the lab is half made.
    pub fn block_device(&self) -> &Path {
        self.state.block_device.as_deref().unwrap_or(Path::new(""))
    }

    /// Counters since the lab came up.
    ///
    /// # Errors
    /// [`LabError::Gone`] if the server is gone, [`LabError::HalfMade`] if it is not up yet.
    pub fn status(&self) -> Result<Status, LabError> {
        if self.state.block_device.is_none() {
            return Err(LabError::HalfMade(self.state.name.clone()));
        }
        let gone = |reason: String| LabError::Gone { name: self.state.name.clone(), reason };
        let text = fs::read(self.state.fuse().join("status")).map_err(|e| gone(e.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| gone(e.to_string()))
    }

    /// Switches the delays off (`true`, while files are prepared) or on.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn set_fast(&self, is_fast: bool) -> Result<(), LabError> {
        let order = if is_fast { Order::Fast } else { Order::Timed };
        order.give(&self.state.fuse())
    }

    /// Has these faults from now on, and no others, while the delays are on.
    ///
    /// # Errors
    /// If the device cannot have such a fault, or the server is gone.
    pub fn set_faults(&self, faults: &[Fault]) -> Result<(), LabError> {
        let size_bytes = self.state.size_bytes;
        faults.iter().try_for_each(|fault| fault.check(size_bytes))?;
        Order::Faults(faults.into()).give(&self.state.fuse())
    }

    /// Sets the kernel's own window, in KiB.
    ///
    /// # Errors
    /// If the attribute cannot be written.
    pub fn set_read_ahead_kb(&self, kb: u64) -> Result<(), LabError> {
        layers::set_queue(self.block_device(), "read_ahead_kb", &kb.to_string())
    }

    /// The kernel's own window, in KiB.
    ///
    /// # Errors
    /// If the attribute cannot be read.
    pub fn read_ahead_kb(&self) -> Result<u64, LabError> {
        layers::queue_number(self.block_device(), "read_ahead_kb")
    }

    /// Empties the page cache of data and metadata: unmounts and mounts the file system, or flushes the bare device.
    /// Afterwards the delays of a lab with a file system are on.
    ///
    /// # Errors
    /// If a program still has files open there.
    pub fn evict(&self) -> Result<(), LabError> {
        let folder = self.mount_point();
        if !layers::is_mounted(&folder) {
            return layers::flush(self.block_device());
        }
        self.set_fast(true)?;
        let evicted = layers::unmount(&folder, &[self.block_device().to_owned()])
            .and_then(|()| layers::mount(self.block_device(), &folder));
        // Also if it is in use: the next reads must take their time again.
        let is_timed = self.set_fast(false);
        evicted.and(is_timed)
    }

    /// Removes it, see [`remove`](crate::remove).
    ///
    /// # Errors
    /// [`LabError::Busy`] if a program still has files open.
    pub fn down(&self) -> Result<(), LabError> {
        crate::remove(&self.state.name)
    }
}

/// A lab that is removed when this is dropped, even if a test panics.
#[derive(Debug)]
pub struct LabGuard(Lab);

impl LabGuard {
    /// Makes a lab, see [`Lab::up`].
    ///
    /// # Errors
    /// See [`LabError`].
    pub fn up(options: &Options) -> Result<LabGuard, LabError> {
        Lab::up(options).map(LabGuard)
    }
}

impl std::ops::Deref for LabGuard {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.0
    }
}

impl Drop for LabGuard {
    fn drop(&mut self) {
        if let Err(error) = self.0.down() {
            linux::stderr::note(format_args!("lab {} is not removed: {error}", self.0.name()));
        }
    }
}

fn check_privilege() -> Result<(), LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    if !Path::new("/dev/fuse").exists() {
        return Err(LabError::NoFuse);
    }
    Ok(())
}

/// Checks that the image would fit into memory if it were filled; it is sparse.
fn check_memory(size_bytes: u64) -> Result<(), LabError> {
    match meminfo::available_bytes() {
        Some(free) if size_bytes.saturating_add(SPARE_MEMORY_BYTES) > free => {
            Err(LabError::NoMemory { wanted_mb: size_bytes >> 20, free_mb: free >> 20 })
        }
        _ => Ok(()),
    }
}

/// Clears away a lab whose server, or whose `lab up`, was killed. A lab that is up is an error.
fn clear_leftover(claim: &Claim) -> Result<(), LabError> {
    let name = claim.name();
    if claim.is_new() {
        return Ok(());
    }
    let is_up = |lab: Lab| lab.state.block_device.is_some() && lab.status().is_ok();
    if Lab::attach(name).is_ok_and(is_up) {
        return Err(LabError::NameTaken(name.into()));
    }
    remove::clear(claim)?;
    claim.renew()
}

/// Makes the layers one by one. `state.json` names the block device only once the lab is finished; what exists of
/// others is found by mounts and attached devices.
fn build(
    state: &mut State,
    options: &Options,
    is_stopped: impl Fn() -> bool,
) -> Result<(), LabError> {
    let go_on = || if is_stopped() { Err(LabError::Stopped) } else { Ok(()) };
    // A signal to the process group also ends the tools, whose messages are then not the reason.
    let or_stopped = |error| if is_stopped() { LabError::Stopped } else { error };
    state.save()?;
    state.create_mount_points()?;
    state.server_pid = start_server(state, options)?;
    Order::Fast.give(&state.fuse())?;
    go_on()?;
    let node = layers::attach_loop(&state.fuse().join("disk"), state.spec.is_rotational())
        .map_err(or_stopped)?;
    // A loop device keeps the scheduler of who used it before.
    let scheduler = options.scheduler.as_deref().unwrap_or(layers::NO_SCHEDULER);
    layers::set_scheduler(&node, scheduler)?;
    if options.fs_type != layers::NO_FILE_SYSTEM {
        go_on()?;
        layers::make_file_system(&node, &options.fs_type).map_err(or_stopped)?;
        go_on()?;
        layers::mount(&node, &state.mount_point()).map_err(or_stopped)?;
    }
    layers::set_queue(&node, "read_ahead_kb", &layers::STOCK_READ_AHEAD_KB.to_string())?;
    Order::Timed.give(&state.fuse())?;
    state.block_device = Some(node);
    state.save()?;
    go_on()
}

/// Starts `lab serve`, without the terminal's signals, and waits until it prints that its files are there.
fn start_server(state: &State, options: &Options) -> Result<u32, LabError> {
    let own = || std::env::current_exe().map_err(LabError::file("/proc/self/exe"));
    let server = options.server.clone().map_or_else(own, Ok)?;
    let mut command = Command::new(&server);
    command.args(["lab", "serve", "--device", &state.device, "--size"]);
    command.arg(state.size_bytes.to_string()).arg("--folder").arg(state.fuse());
    command.arg("--inject-late").arg(options.inject_late_us.to_string());
    for fault in &options.faults {
        command.arg("--fault").arg(fault.to_string());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(LabError::file(server))?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut line);
    }
    if line.trim() == "ready" {
        return Ok(child.id());
    }
    let failed = child.wait_with_output();
    let said = failed.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    Err(LabError::NotStarted(said.unwrap_or_default()))
}
