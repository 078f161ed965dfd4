package perfetto

import "encoding/binary"

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wireFixed  = 1 // 64 bits
	wireBytes  = 2
)

// Field numbers of the messages in Perfetto's protos.
const (
	tracePacket = 1 // Trace

	packetTime       = 8 // TracePacket
	packetSequence   = 10
	packetEvent      = 11
	packetInterned   = 12
	packetFlags      = 13
	packetDescriptor = 60
	packetFirst      = 87

	descriptorUUID     = 1 // TrackDescriptor
	descriptorName     = 2
	descriptorParent   = 5
	descriptorCounter  = 8
	descriptorOrdering = 11
	descriptorRank     = 12
	descriptorMerge    = 15

	counterUnitName = 6 // CounterDescriptor

	eventAnnotation = 4 // TrackEvent
	eventType       = 9
	eventNameID     = 10
	eventTrack      = 11
	eventName       = 23
	eventDouble     = 44
	eventFlow       = 47

	annotationNameID = 1 // DebugAnnotation
	annotationInt    = 4
	annotationDouble = 5
	annotationString = 6
	annotationName   = 10

	internedEvents      = 2 // InternedData
	internedAnnotations = 3

	internedID   = 1 // EventName and DebugAnnotationName
	internedName = 2
)

// Values of the messages' enumerations.
const (
	typeBegin   = 1 // TrackEvent.Type
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	flagClearsState = 1 // TracePacket.SequenceFlags
	flagNeedsState  = 2

	orderingExplicit = 3 // TrackDescriptor.ChildTracksOrdering
	mergeNever       = 2 // TrackDescriptor.SiblingMergeBehavior
)

func appendVarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendTag(b []byte, field, wire uint64) []byte { return appendVarint(b, field<<3|wire) }

func appendVarintField(b []byte, field, v uint64) []byte {
	return appendVarint(appendTag(b, field, wireVarint), v)
}

func appendFixedField(b []byte, field, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, field, wireFixed), v)
}

func appendBytesField(b []byte, field uint64, v []byte) []byte {
	return append(appendVarint(appendTag(b, field, wireBytes), uint64(len(v))), v...)
}

func appendTextField(b []byte, field uint64, v string) []byte {
	return append(appendVarint(appendTag(b, field, wireBytes), uint64(len(v))), v...)
}
