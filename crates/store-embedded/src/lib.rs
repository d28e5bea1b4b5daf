//! The default store: one directory, no service.

mod disk;

pub use crate::disk::{Disk, DiskFile, RealDisk};
