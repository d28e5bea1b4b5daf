//! The program `telusur`. Everything it does is in the library beside it.

use std::process::ExitCode;

// Parsing makes many small allocations on several threads, which the system's allocator serialises.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = telusur_parse_pool::child_if_asked() {
        return code;
    }
    telusur::process::prepare();
    telusur::commands::run(std::env::args_os())
}
