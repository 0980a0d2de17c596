//! A process of a test's own, which ends with the test, also when that fails.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// Killed, by its number, when this is dropped.
pub(crate) struct Own(Child);

impl Own {
    pub(crate) fn start(command: &mut Command) -> Own {
        Own(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Deref for Own {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // It may have ended, and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
