//! Protobuf on the wire, with one difference from tonic's own codec: bytes that are no message of the expected
//! type are INVALID_ARGUMENT, not INTERNAL. The fault is the caller's (CSI: an invalid field), a string that is no
//! UTF-8 among them, and the contract keeps INTERNAL for a mount that failed (section 6).
//!
//! It never shows the bytes: prost's error names fields, not values (C47).

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// The codec of every generated server and client.
#[derive(Debug, Clone)]
pub struct CsiCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for CsiCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for CsiCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = CsiDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CsiDecoder(PhantomData)
    }
}

/// The decoding half of [`CsiCodec`].
#[derive(Debug, Clone)]
pub struct CsiDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for CsiDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        match U::decode(buf) {
            Ok(message) => Ok(Some(message)),
            Err(error) => {
                tracing::warn!(%error, "a message on the socket could not be decoded");
                Err(Status::invalid_argument(format!("the message is not valid protobuf: {error}")))
            }
        }
    }
}
