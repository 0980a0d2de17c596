//! Chromium without a window: what it says of a page, and a picture of it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::stage::skipped;

/// Prints one line to the console of a browser: whether the page is dark, the colour of its text, and how far to the
/// right anything outside of scrolling tables reaches if the page is as wide as a phone, in pixels.
const MEASURE: &str = "<script>
const root = document.documentElement;
root.style.width = '420px';
const outside = [...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll table, svg *'));
const right = Math.max(...outside.map(one => one.getBoundingClientRect().right));
root.style.width = '';
console.log(JSON.stringify({
    is_dark: matchMedia('(prefers-color-scheme: dark)').matches,
    text: getComputedStyle(document.body).color,
    right,
}));
</script>";

/// A colour scheme that a reader prefers, and its number in Chromium.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scheme {
    Dark = 0,
    Light = 1,
}

/// An installed Chromium, with a profile of its own.
pub(crate) struct Browser {
    program: &'static str,
    profile: TempDir,
}

impl Browser {
    /// `None` where there is none.
    pub(crate) fn found() -> Option<Self> {
        let runs = |program: &&str| {
            let output = Command::new(program).arg("--version").output();
            output.is_ok_and(|output| output.status.success())
        };
        let Some(program) = ["chromium", "google-chrome"].into_iter().find(|name| runs(name))
        else {
            return skipped("no Chromium; `scripts/setup tests` installs it");
        };
        Some(Browser { program, profile: tempfile::tempdir().expect("a folder") })
    }

    /// Opens a page in a window of 1400 pixels, and makes a picture of it. Returns each line of the console: the
    /// measurements, and what is wrong with the page.
    pub(crate) fn console(&self, html: &str, scheme: Scheme, picture: &Path) -> Vec<String> {
        let page = self.profile.path().join("page.html");
        let measuring = html.replace("</body>", &format!("{MEASURE}</body>"));
        std::fs::write(&page, measuring).expect("written");
        let profile = self.profile.path().join("profile");
        // A browser that hangs is a failure, not the end of all tests.
        let output = Command::new("timeout")
            .args(["300", self.program, "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--enable-logging=stderr", "--window-size=1400,4000"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--blink-settings=preferredColorScheme={}", scheme as u8))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("timeout is there");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let lines = said.lines().filter(|line| line.contains(":CONSOLE:"));
        lines.filter_map(|line| Some(line.split_once("] \"")?.1.to_owned())).collect()
    }
}

/// The measurements of a page of which the console has nothing else to say.
pub(crate) fn measured(console: &[String]) -> Value {
    let [only] = console else { panic!("{console:?}") };
    let (json, _) = only.split_once("\", source: ").expect("the script's place");
    serde_json::from_str(json).expect("what the script prints")
}
