//! The reference pages that are generated from this crate.

use std::{fs, path::PathBuf};

use ocm_runtime::metrics::Metrics;

#[test]
fn the_page_about_metrics_is_what_the_code_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, Metrics::reference()).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        Metrics::reference(),
        "docs/reference/metrics.md is old: run BLESS=1 cargo test -p ocm-runtime --test reference"
    );
}
