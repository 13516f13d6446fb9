//! What the integration tests stand on: a server in this process or in one of its own, on SQLite or
//! PostgreSQL, and a client for it.
//!
//! [`on_both_backends!`] runs tests on both databases. Each gets a [`TestApp`]: a server, a demo app, its
//! keys and tokens, and a clock that tests move. [`Child`] is the server's program, to be killed.

pub mod app;
pub mod beside;
pub mod campaigns;
pub mod child;
pub mod client;
pub mod console;
pub mod pooler;
pub mod postgres;
pub mod providers;
pub mod proxy;
pub mod schema;
pub mod session;
pub mod soak;
mod sqlite;
pub mod storage;
pub mod transitions;

pub use app::{Backend, Site, TestApp};
pub use child::Child;
pub use client::{Answer, Credential};
pub use session::Session;

/// Where cargo put what the tests need; to be used in an integration test.
#[macro_export]
macro_rules! site {
    () => {
        $crate::Site {
            program: env!("CARGO_BIN_EXE_nudge-under-test"),
            scratch: env!("CARGO_TARGET_TMPDIR"),
        }
    };
}

/// Makes tests of functions that take a [`TestApp`]: each on SQLite and on PostgreSQL.
#[macro_export]
macro_rules! on_both_backends {
    ($($name:ident),* $(,)?) => {
        $crate::on_both_backends!(@module on_sqlite Sqlite $($name)*);
        $crate::on_both_backends!(@module on_postgres Postgres $($name)*);
    };
    (@module $module:ident $backend:ident $($name:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let mut app = $crate::TestApp::start($crate::site!(), $crate::Backend::$backend).await;
                    super::$name(&mut app).await;
                    app.finish().await;
                }
            )*
        }
    };
}
