//! The Deployments of `deploy/pods` start the image that `make image` packs.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

#[test]
fn every_deployment_names_the_image_of_this_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let makefile = fs::read_to_string(root.join("Makefile")).expect("the Makefile is there");
    let registry = makefile.lines().find_map(|line| line.strip_prefix("REGISTRY ?= ")).expect("it names a registry");
    let expected = format!("{registry}/ocm:{}", env!("CARGO_PKG_VERSION"));
    for file in ["agent.yaml", "hub.yaml", "webhook.yaml"] {
        let text = fs::read_to_string(root.join("deploy/pods").join(file)).expect("the file is there");
        let images: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("image: ")).collect();
        assert_eq!(images, [expected.as_str()], "deploy/pods/{file}: write the version of Cargo.toml there");
    }
}
