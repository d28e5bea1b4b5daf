//! The flag of commands that write: how much space they leave on the disk.

use clap::Args;

use super::given_texts;
use crate::settings::{Given, Key};

/// How much space a command leaves.
#[derive(Args, Clone, Debug, Default)]
pub struct SpaceArgs {
    /// Stop when less space than this is left on the disk [default: 2GiB]
    #[arg(long, value_name = "SIZE")]
    pub min_free_disk: Option<String>,
}

impl SpaceArgs {
    /// The setting, if it was given.
    pub fn given(&self) -> Vec<Given> {
        given_texts([(Key::MinFreeDisk, &self.min_free_disk)]).collect()
    }
}

/// A crawl that is worked on, and the space that is left.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID")]
    pub crawl: String,
    /// How much space is left
    #[command(flatten)]
    pub space: SpaceArgs,
}
