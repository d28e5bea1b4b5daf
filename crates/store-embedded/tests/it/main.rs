//! The embedded store on a real directory, and its bodies on a simulated disk.

mod conformance;
mod directory;
mod power_loss;
