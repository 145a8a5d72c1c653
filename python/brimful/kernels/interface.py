"""The interface of kernels, as `docs/kernel-abi.md` describes it."""

#: The version of the interface that this package is written for.
ABI_VERSION = 5

#: Fields of the context of a kernel, and of a vertex; their offsets follow the rules of C.
CONTEXT = """abi_version:u4 size:u4 call:u4 state_words:u4 count:u8 failed:u8 parameters:u8
parameter_count:u8 silence:u8 sources:u8 targets:u8 weights:u8 first_source:u8 first_target:u8
source_signals:u8 sums:u8 vertices:u8 states:u8 signals:u8 vertex_count:u8 superstep:u8
aggregate:u8 partial:u8 signal_threshold:f8 collect_threshold:f8 score:f8"""
VERTEX = "id:u8 degree:u8 strength:f8 external:u8"

#: Kinds of calls: to set states, to combine signals along edges, to collect, and to merge sums. The
#: engine itself combines and merges signals that are numbers.
INITIAL, EDGES, COLLECT, MERGE = 0, 1, 2, 3

#: Statuses: the vertex cannot act, and it cannot act unless it is silent.
FAILED, NO_SIGNAL = 1, 2
