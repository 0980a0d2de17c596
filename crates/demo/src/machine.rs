//! Which programs the machine has.

/// Whether the shell would find this program.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_the_shell_finds_them() {
        assert!(has_program("sh"));
        assert!(!has_program("no-program-has-this-name"));
    }
}
