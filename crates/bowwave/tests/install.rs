//! What `make install` puts where, below a folder of the test's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What make says.
fn made(goal: &str, prefix: &str, target: &Path, root: &Path) -> Output {
    Command::new("make")
        .args(["--old-file=build", "-C", REPOSITORY, goal])
        .arg(format!("PREFIX={prefix}"))
        .arg(format!("TARGET={}", target.display()))
        .arg(format!("DESTDIR={}", root.display()))
        .output()
        .expect("make is there")
}

/// Installs with that prefix, or does what else `goal` says.
fn make(goal: &str, prefix: &str, target: &Path, root: &Path) {
    let output = made(goal, prefix, target, root);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder where cargo seems to have built bowwave.
fn built() -> TempDir {
    let target = tempfile::tempdir().expect("a folder");
    fs::create_dir(target.path().join("release")).expect("made");
    symlink(BOWWAVE, target.path().join("release/bowwave")).expect("linked");
    target
}

/// Files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

/// Places within the documentation that a page of it leads to.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.starts_with("http"))
}

#[test]
fn a_prefix_that_make_would_take_apart_is_refused() {
    let (target, root) = (built(), tempfile::tempdir().expect("a folder"));
    for prefix in ["opt/bowwave", "", "/opt/bow wave", "/opt/a|b", "/opt/&"] {
        for goal in ["install", "uninstall"] {
            let output = made(goal, prefix, target.path(), root.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("PREFIX must begin"), "{said}");
        }
    }
    assert_eq!(files_below(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn after_an_installation_one_is_told_commands_that_work() {
    let next = |prefix: &str| {
        let mut script = Command::new(Path::new(REPOSITORY).join("scripts/after-install"));
        let output = script.arg(prefix).env("PATH", "/usr/bin:/bin:/usr/local/bin").output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    };
    let told = next("/usr/local");
    let run = "sudo /usr/local/bin/bowwave run";
    assert!(told.contains("Next: bowwave doctor") && told.contains(run), "{told}");
    assert_eq!(told, next("/usr/local/"));
    assert!(next("/usr").contains("sudo bowwave run"));
    let told = next("/opt/bowwave");
    assert!(told.contains("sudo /opt/bowwave/bin/bowwave run -- COMMAND"), "{told}");
    let daemon = match Path::new("/run/systemd/system").exists() {
        true => "systemctl enable --now /opt/bowwave/lib/systemd/system/bowwave.service\n",
        false => "sudo /opt/bowwave/bin/bowwave daemon\n",
    };
    assert!(told.ends_with(daemon), "{told}");
}

#[test]
fn what_is_installed_agrees_with_its_prefix_and_goes_again() {
    let (target, root) = (built(), tempfile::tempdir().expect("a folder"));
    for prefix in ["/usr", "/usr/local", "/opt/bowwave"] {
        make("install", prefix, target.path(), root.path());
        let below = root.path().join(&prefix[1..]);
        let program = Command::new(below.join("bin/bowwave")).arg("--version").output();
        let version = String::from_utf8(program.expect("it runs").stdout).expect("text");
        assert!(version.starts_with(concat!("bowwave ", env!("CARGO_PKG_VERSION"), " (")));
        let shared = ["man/man1/bowwave-daemon.1", "bash-completion/completions/bowwave"];
        for generated in shared.iter().chain(&["zsh/site-functions/_bowwave"]) {
            let generated = text(&below.join("share").join(generated)).replace('\\', "");
            assert!(generated.contains("--check-config"), "{generated}");
        }
        let unit = text(&below.join("lib/systemd/system/bowwave.service"));
        assert!(unit.contains(&format!("ExecStart={prefix}/bin/bowwave ")), "{unit}");
        assert!(unit.contains(&format!(" file://{prefix}/share/doc/bowwave/README.md")), "{unit}");
        assert_eq!(unit.matches("/bin/bowwave ").count(), 2, "{unit}");
        assert!(unit.contains(&format!("ExecStopPost=-{prefix}/bin/bowwave daemon --recover")));
        let limits = ["MemoryHigh=", "MemoryMax="].map(|limit| format!("\n{limit}"));
        let is_limited = limits.iter().any(|limit| unit.contains(limit));
        assert!(!is_limited, "a limit bounds what of all managed files stays cached");
        let metrics = text(&below.join("lib/systemd/system/bowwave-metrics.service"));
        assert!(metrics.contains(&format!("ExecStart={prefix}/bin/bowwave status --metrics ")));
        assert!(metrics.contains(&format!("=file://{prefix}/share/doc/bowwave/docs/status.md\n")));
        let rules = text(&below.join("lib/udev/rules.d/60-bowwave.rules"));
        assert_eq!(rules.matches(&format!("\"{prefix}/bin/bowwave tune --hook")).count(), 3);
        let docs = below.join("share/doc/bowwave");
        for page in files_below(&docs).iter().filter(|file| file.extension() == Some("md".as_ref()))
        {
            for link in links(&text(page)) {
                let to = page.parent().expect("a folder").join(link);
                assert!(to.exists(), "{} leads to {link}", page.display());
            }
        }
        assert!(docs.join("LICENSE-MIT").exists() && docs.join("docs/field.md").exists());
        make("uninstall", prefix, target.path(), root.path());
        assert_eq!(files_below(root.path()), [""; 0].map(PathBuf::from), "{prefix}");
        assert!(!docs.exists());
    }
}

/// What `scripts/setup` says on standard error, on that kernel and by a user who may install nothing.
fn told_by_setup(kernel: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, answer) in [("uname", kernel), ("id", "1000")] {
        let path = folder.path().join(program);
        fs::write(&path, format!("#!/bin/sh\necho {answer}\n")).expect("written");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    }
    let path = std::env::var("PATH").expect("text");
    let output = Command::new("sh")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/setup"))
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .output()
        .expect("sh is there");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn settings_of_an_administrator_stay() {
    let (target, root) = (built(), tempfile::tempdir().expect("a folder"));
    let config = root.path().join("etc/bowwave/config.toml");
    make("install", "/usr", target.path(), root.path());
    assert_eq!(text(&config), include_str!("../../../etc/config.toml"));
    fs::write(&config, "charge = 'reader'").expect("written");
    make("install", "/usr", target.path(), root.path());
    make("uninstall", "/usr", target.path(), root.path());
    assert_eq!(text(&config), "charge = 'reader'");
}

#[test]
fn setup_warns_of_a_kernel_that_is_too_old_before_anything_else() {
    for old in ["6.0.9-1-amd64", "5.10.0", "5.15.0-18"] {
        let said = told_by_setup(old);
        assert!(said.starts_with(&format!("Linux {old} is older than 6.1: ")), "{said}");
        assert!(said.contains("simulator") && said.contains("tune"), "{said}");
    }
    for new in ["6.1.0-18", "6.12.9", "6.18.44-custom", "7.0.0-rc1"] {
        assert!(!told_by_setup(new).contains("older"), "{new}");
    }
}
