//! A scripted model server on loopback that speaks every wire.
