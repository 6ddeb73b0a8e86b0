//! The reference page that is generated from this crate.

use std::{fs, path::PathBuf, process::Command};

#[test]
fn the_page_about_flags_equals_the_flags_of_the_program() -> anyhow::Result<()> {
    let page = String::from_utf8(Command::new(env!("CARGO_BIN_EXE_ocm")).arg("flags").output()?.stdout)?;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flags.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page)?;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "docs/reference/flags.md is old: run BLESS=1 cargo test -p ocm-server --test reference");
    Ok(())
}
