//! Settings that the profiles of the workspace must not have.

const MANIFEST: &str = include_str!("../../Cargo.toml");

#[test]
fn a_panic_ends_a_task_and_never_the_process() {
    let settings = MANIFEST.lines().map(|line| line.split('#').next().unwrap_or_default().replace(' ', ""));
    let aborts = settings.filter(|setting| setting == "panic=\"abort\"").count();
    assert_eq!(
        aborts, 0,
        "a controller whose reconcile panics tries again, and an add-on's code that panics fails alone: both need panics to unwind"
    );
}
