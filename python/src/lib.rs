//! The native half of the Python package: JSON in, JSON out.
//!
//! The Python code in `package/infold` converts objects to JSON and back. All work here is done without the
//! interpreter's lock, which is only taken to call a summarizer that is a Python function.

mod failure;
mod function_summarizer;
mod options;
mod json_list;
mod fold;
mod search;
mod task;

use pyo3::pymodule;

#[pymodule]
mod _infold {
    #[pymodule_export]
    use crate::fold::fold;
    #[pymodule_export]
    use crate::search::{list_tasks, search};
    #[pymodule_export]
    use crate::task::Task;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
