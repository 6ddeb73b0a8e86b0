//! The command lines of OCM's commands, as data: every flag with its default.
//!
//! A flag that has the same effect as in OCM is an argument of ours ([`Here::Works`]), defined where it is used. The others are
//! added from the [`TABLE`]: one without effect is logged once, and one that asks for something that is not built is
//! refused. [`page()`] documents both.

mod normal;
mod page;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;

use anyhow::ensure;
use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use tracing::info;

pub(crate) use self::{
    page::page,
    value::{duration, flag},
};
use self::{table::TABLE, value::Kind};

/// A command of ours, and the commands of OCM that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Hub,
    Agent,
    Webhook,
}

impl Side {
    const ALL: [Self; 3] = [Self::Hub, Self::Agent, Self::Webhook];

    fn command(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Agent => "agent",
            Self::Webhook => "webhook",
        }
    }

    fn of(command: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.command() == command)
    }
}

/// A flag of one of OCM's commands.
#[derive(Debug)]
struct Flag {
    side: Side,
    name: &'static str,
    /// OCM's default, as on a command line.
    default: &'static str,
    kind: Kind,
    here: Here,
}

/// What a flag of OCM does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// The same as in OCM.
    Works,
    /// The same as in OCM, with another default, for this reason.
    OtherDefault(&'static str),
    /// Nothing: it is accepted, for this reason.
    NoEffect(&'static str),
    /// What it asks for is not built: every value except its default and these is refused, with this advice.
    NotBuilt { also: &'static [&'static str], advice: &'static str },
    /// In OCM, it has an effect only with a feature gate that is not built here: it is refused if the gate is requested.
    Gated(&'static str),
}

/// The heading of flags in the help that are not arguments of ours.
const HEADING: &str = "Flags of OCM that have no effect or are not built yet";

impl Flag {
    /// The argument for a flag that is not one of ours.
    fn arg(&'static self) -> Option<Arg> {
        let help = match self.here {
            Here::Works | Here::OtherDefault(_) => return None,
            Here::NoEffect(reason) => format!("No effect: {reason}"),
            Here::NotBuilt { also, advice } => not_built(self.default, also, advice),
            Here::Gated(gate) => gated(gate),
        };
        let arg = Arg::new(self.name).long(self.name).help(help).help_heading(HEADING).hide_short_help(true);
        let arg = arg.action(if self.kind.repeats() { ArgAction::Append } else { ArgAction::Set });
        Some(self.kind.shape(arg))
    }

    /// The accepted values of a flag that is not built.
    fn accepts(&self, value: &str) -> bool {
        match self.here {
            Here::NotBuilt { also, .. } => value.is_empty() || value == self.default || also.contains(&value),
            _ => true,
        }
    }
}

fn gated(gate: &str) -> String {
    format!("Has an effect only with the feature gate {gate}, which is not built yet")
}

/// Why a flag is refused: none of its values is built, or only some.
fn not_built(default: &str, also: &[&str], advice: &str) -> String {
    match also.first().copied().unwrap_or(default) {
        "" => format!("Not built yet: {advice}"),
        value => format!("Accepts only {value}, since nothing else is built yet: {advice}"),
    }
}

/// The command line of the whole program: `command` with the flags of OCM that it does not define.
pub(crate) fn complete(command: Command) -> Command {
    let command = Side::ALL.into_iter().fold(command, |command, side| {
        command.mut_subcommand(side.command(), |command| {
            let flags = TABLE.iter().filter(move |flag| flag.side == side);
            // As in Go, the last occurrence of a flag counts.
            command.args(flags.filter_map(Flag::arg)).args_override_self(true)
        })
    });
    command.args_override_self(true)
}

/// The arguments of this process in the form that [`complete`] expects.
pub(crate) fn arguments() -> Vec<OsString> {
    normal::form(std::env::args_os().collect())
}

/// Flags of OCM that were given and are not arguments of ours, with their values.
#[derive(Debug, Default)]
pub(crate) struct Given(Vec<(&'static Flag, Vec<String>)>);

impl Given {
    /// Those on a command line of [`complete`].
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let Some((command, matches)) = matches.subcommand() else { return Self::default() };
        let of_side = TABLE.iter().filter(|flag| Some(flag.side) == Side::of(command));
        let given = of_side.filter(|flag| matches.try_contains_id(flag.name).is_ok() && flag.arg().is_some());
        let given = given.filter(|flag| matches.value_source(flag.name) == Some(ValueSource::CommandLine));
        let values = |flag: &Flag| matches.get_many::<String>(flag.name).into_iter().flatten().cloned().collect();
        Self(given.map(|flag| (flag, values(flag))).collect())
    }

    /// Refuses flags that ask for what is not built, and logs those without effect. `gates` are the requested gates that are
    /// not built.
    ///
    /// # Errors
    /// With the flag, its value and what to do instead.
    pub(crate) fn check(&self, gates: &[&str]) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|(flag, values)| refuse(flag, values, gates))?;
        self.0.iter().for_each(|(flag, _)| log(flag));
        Ok(())
    }
}

fn refuse(flag: &Flag, values: &[String], gates: &[&str]) -> anyhow::Result<()> {
    match flag.here {
        Here::NotBuilt { advice, .. } => {
            let refused = values.iter().find(|value| !flag.accepts(value));
            let refused = refused.map(String::as_str);
            ensure!(refused.is_none(), "--{}={} is not built yet: {advice}", flag.name, refused.unwrap_or_default());
        }
        Here::Gated(gate) => ensure!(
            !gates.contains(&gate),
            "--{} counts only with the feature gate {gate}, which is not built yet: leave out both",
            flag.name
        ),
        Here::Works | Here::OtherDefault(_) | Here::NoEffect(_) => {}
    }
    Ok(())
}

fn log(flag: &Flag) {
    let name = flag.name;
    match flag.here {
        Here::NoEffect(reason) => info!("the flag --{name} has no effect here: {reason}"),
        Here::Gated(gate) => info!("the flag --{name} has no effect without the feature gate {gate}"),
        Here::Works | Here::OtherDefault(_) | Here::NotBuilt { .. } => {}
    }
}
