//! The program: arguments in, exit code out.

use std::process::ExitCode;

/// Backs large tables with pages of 2 MiB where the system lets programs ask for them. With pages of 4 KiB, which is all that the
/// system's allocator asks for, most of a query's time at a million names goes into finding pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    meridian::app::main()
}
