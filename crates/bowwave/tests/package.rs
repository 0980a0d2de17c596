//! What the packages say agrees with the workspace.

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn packages_have_the_version_of_the_workspace() {
    let changelog = include_str!("../../../debian/changelog");
    assert!(changelog.starts_with(&format!("bowwave ({VERSION}) ")), "debian/changelog");
    let spec = include_str!("../../../etc/bowwave.spec");
    let version = spec.lines().find_map(|line| line.strip_prefix("Version:"));
    assert_eq!(version.map(str::trim), Some(VERSION), "etc/bowwave.spec");
}

#[test]
fn the_unit_that_serves_metrics_is_for_this_machine_only_and_has_no_capabilities() {
    let unit = include_str!("../../../etc/bowwave-metrics.service");
    for line in ["DynamicUser=yes", "CapabilityBoundingSet=", "IPAddressAllow=localhost"] {
        assert!(unit.lines().any(|has| has == line), "{line}");
    }
    assert!(unit.contains(" --listen 127.0.0.1:9464\n"));
}

#[test]
fn the_unit_lets_systemd_watch_and_reload_it() {
    let unit = include_str!("../../../etc/bowwave.service");
    for line in
        ["Type=notify", "WatchdogSec=", "ExecReload=", "ExecStopPost=", "Restart=on-failure"]
    {
        assert!(unit.lines().any(|has| has.starts_with(line)), "{line}");
    }
}
