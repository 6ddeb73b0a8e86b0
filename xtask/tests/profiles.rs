//! What the profiles of the workspace may not say.

const MANIFEST: &str = include_str!("../../Cargo.toml");

#[test]
fn a_panic_ends_a_task_and_never_the_process() {
    let aborts = MANIFEST.lines().find(|line| line.split('#').next().unwrap_or_default().trim().starts_with("panic"));
    assert_eq!(
        aborts, None,
        "a controller whose reconcile panics tries again, and an add-on's code that panics fails alone: both need panics to unwind"
    );
}
