//! The macro for enums whose variants have names.

/// Defines an enum, a constant array of all its variants, and a method that returns the name of each.
///
/// The length of the array is written out, so that its declaration shows it; the compiler checks it.
macro_rules! named {
    (
        $(#[$about:meta])* $name:ident,
        $(#[$list_about:meta])* $list:ident: $count:literal
        $($(#[$doc:meta])* $variant:ident = $text:literal,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        $(#[$list_about])*
        pub const $list: [$name; $count] = [$($name::$variant,)*];

        impl $name {
            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    };
}
