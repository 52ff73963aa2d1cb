package lists

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nfsvolume "github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// fieldMask selects the fields of a message to keep. The field numbers are those of
// generated.proto in k8s.io/api and k8s.io/apimachinery.
type fieldMask struct {
	// fields to keep. A nil mask keeps the whole field.
	fields map[protowire.Number]*fieldMask
	// dropped fields. If there are any, all other fields are kept.
	dropped []protowire.Number
	// keys selects entries by key or name, if the message is an entry of a map or of a list of named objects.
	keys []string
}

var (
	keptMetadata = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: nil, 3: nil, 5: nil, 8: nil, // name, namespace, uid, creationTimestamp
		12: {keys: storage.VolumeAnnotations()},
	}}
	keptClaim  = &fieldMask{fields: map[protowire.Number]*fieldMask{1: keptMetadata}}
	keptVolume = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: keptMetadata,
		2: {fields: map[protowire.Number]*fieldMask{ // spec
			2: {fields: map[protowire.Number]*fieldMask{22: keptCSI}},
			3: nil,                                                               // accessModes
			4: {fields: map[protowire.Number]*fieldMask{2: nil, 3: nil, 4: nil}}, // claimRef: namespace, name, uid
			6: nil,                                                               // storageClassName
		}},
		3: {fields: map[protowire.Number]*fieldMask{1: nil}}, // status: phase
	}}
	// A pod's status is kept whole; so are its metadata except for managed fields.
	keptPod = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: {dropped: []protowire.Number{17}},
		2: {fields: map[protowire.Number]*fieldMask{
			1: {keys: []string{longhorn.LogVolume}},
			// containers without command, ports, variables, mounts, lifecycle, contexts, other probes
			2: {dropped: []protowire.Number{3, 6, 7, 9, 12, 15, 19, 21, 22}},
			7: nil, 10: nil, 11: nil, // nodeSelector, nodeName, hostNetwork
			22: nil, 24: nil, 38: nil, // tolerations, priorityClassName, schedulingGates
		}},
		3: nil,
	}}
	// metadata without the fields that no rule reads: generateName, grace period, owners, finalizers, managed fields
	plainMetadata  = &fieldMask{dropped: []protowire.Number{2, 10, 13, 14, 17}}
	keptAttachment = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: {fields: map[protowire.Number]*fieldMask{1: nil, 3: nil, 5: nil, 8: nil, 12: {keys: []string{nfsvolume.AttachedServiceAnnotation}}}}, 2: nil,
	}}
	keptService = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: plainMetadata,
		2: {fields: map[protowire.Number]*fieldMask{2: nil, 3: nil, 4: nil}}, // spec: selector, clusterIP, type
	}}
	keptNode = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: {fields: map[protowire.Number]*fieldMask{1: nil, 5: nil, 11: nil}}, // name, uid, labels
		2: {fields: map[protowire.Number]*fieldMask{4: nil, 5: nil}},          // spec: unschedulable, taints
		3: {fields: map[protowire.Number]*fieldMask{2: nil, 4: nil}},          // status: allocatable, conditions
	}}
	keptCSI = &fieldMask{fields: map[protowire.Number]*fieldMask{
		1: nil, 2: nil, // driver, volumeHandle
		5: {keys: []string{longhorn.MigratableAttribute, longhorn.EngineAttribute, nfsvolume.ServiceAttribute}},
	}}
)

const (
	protobuf         = "application/vnd.kubernetes.protobuf"
	protobufMetadata = protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// protoLists lists Kubernetes kinds with very many objects; of claims only the metadata.
// Each object is reduced to the fields in use before it is decoded.
type protoLists struct {
	core, storage rest.Interface
	parameters    runtime.ParameterCodec
}

// protoKind says how to list one kind.
type protoKind struct {
	resource, accept string
	mask             *fieldMask
	object           unmarshaler
	// storage: the kind is of group storage.k8s.io.
	storage bool
}

// unmarshaler is implemented by the generated code of every Kubernetes type.
type unmarshaler interface {
	runtime.Object
	Reset()
	Unmarshal([]byte) error
}

func protoKindOf(list client.ObjectList) (protoKind, bool) {
	switch list := list.(type) {
	case *corev1.PersistentVolumeList:
		return protoKind{"persistentvolumes", protobuf, keptVolume, &corev1.PersistentVolume{}, false}, true
	case *corev1.PodList:
		return protoKind{"pods", protobuf, keptPod, &corev1.Pod{}, false}, true
	case *corev1.ServiceList:
		return protoKind{"services", protobuf, keptService, &corev1.Service{}, false}, true
	case *corev1.NodeList:
		return protoKind{"nodes", protobuf, keptNode, &corev1.Node{}, false}, true
	case *storagev1.VolumeAttachmentList:
		return protoKind{"volumeattachments", protobuf, keptAttachment, &storagev1.VolumeAttachment{}, true}, true
	case *metav1.PartialObjectMetadataList:
		gvk := list.GroupVersionKind()
		return protoKind{"persistentvolumeclaims", protobufMetadata, keptClaim, &metav1.PartialObjectMetadata{}, false},
			gvk.Group == "" && gvk.Kind == storage.ClaimKind+"List"
	}
	return protoKind{}, false
}

func (p *protoLists) reads(list client.ObjectList) bool {
	_, ok := protoKindOf(list)
	return ok
}

// each visits all objects. It reuses one object for all visits.
func (p *protoLists) each(ctx context.Context, list client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption) error {
	kind, _ := protoKindOf(list)
	var kept []byte
	take := func(item []byte) (err error) {
		if kept, err = kind.mask.appendKept(kept[:0], item); err != nil {
			return err
		}
		kind.object.Reset()
		if err := kind.object.Unmarshal(kept); err != nil {
			return err
		}
		return visit(kind.object)
	}
	api := p.core
	if kind.storage {
		api = p.storage
	}
	return eachStreamed(ctx, api, p.parameters, kind.resource, options, func(request *rest.Request) *rest.Request { return request.SetHeader("Accept", kind.accept) },
		func(body io.Reader) (string, error) { return decodeProtoList(body, take) })
}

// appendKept appends the fields of a message that the mask keeps.
func (m *fieldMask) appendKept(to, message []byte) ([]byte, error) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := message[:tag+size]
		message = message[tag+size:]
		inner, kept := m.fields[number]
		kept = kept || m.dropped != nil && !slices.Contains(m.dropped, number)
		if kept && inner != nil && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(field[tag:])
			if inner.keys == nil {
				var err error
				if to, err = inner.appendMessage(append(to, field[:tag]...), content); err != nil {
					return nil, err
				}
				continue
			}
			kept = inner.hasKey(content)
		}
		if kept {
			to = append(to, field...)
		}
	}
	return to, nil
}

// appendMessage appends a reduced message, preceded by its length.
func (m *fieldMask) appendMessage(to, message []byte) ([]byte, error) {
	begin := len(to)
	to, err := m.appendKept(to, message)
	if err != nil {
		return nil, err
	}
	var length [binary.MaxVarintLen64]byte
	return slices.Insert(to, begin, protowire.AppendVarint(length[:0], uint64(len(to)-begin))...), nil
}

// hasKey reports whether the mask keeps an entry. The entry's key or name is its first field.
func (m *fieldMask) hasKey(entry []byte) bool {
	number, kind, tag := protowire.ConsumeTag(entry)
	if tag < 0 || number != 1 || kind != protowire.BytesType {
		return false
	}
	key, _ := protowire.ConsumeBytes(entry[tag:])
	return slices.ContainsFunc(m.keys, func(kept string) bool { return kept == string(key) })
}

var (
	errNotProtobuf = errors.New("the API server did not answer in protobuf")
	// protobufMagic is the prefix of Kubernetes protobuf (k8s.io/apimachinery pkg/runtime/serializer/protobuf).
	protobufMagic = [4]byte{'k', '8', 's', 0}
)

// mostOfAnObject is above the size limit of objects in the API server, in bytes.
const mostOfAnObject = 16 << 20

// decodeProtoList calls take with each item of a protobuf list, and returns the continue
// token of the next page. An item is valid until take returns.
func decodeProtoList(body io.Reader, take func(item []byte) error) (next string, err error) {
	stream := &protoStream{r: bufio.NewReaderSize(body, 64<<10)}
	var magic [4]byte
	if _, err := io.ReadFull(stream.r, magic[:]); err != nil {
		return "", err
	}
	if magic != protobufMagic {
		return "", errNotProtobuf
	}
	// The envelope (runtime.Unknown) has the list in field 2. A list has its metadata
	// in field 1 (with the continue token in field 3) and its items in field 2.
	found := false
	err = stream.fields(-1, func(number protowire.Number, size int) error {
		if number != 2 {
			return stream.skip(size)
		}
		found = true
		return stream.fields(size, func(number protowire.Number, size int) error {
			if number != 1 && number != 2 {
				return stream.skip(size)
			}
			content, err := stream.read(size)
			if err != nil {
				return err
			}
			if number == 2 {
				return take(content)
			}
			about := &metav1.ListMeta{}
			err = about.Unmarshal(content)
			next = about.Continue
			return err
		})
	})
	if err == nil && !found {
		err = io.ErrUnexpectedEOF
	}
	return next, err
}

// protoStream reads messages from a stream.
type protoStream struct {
	r    *bufio.Reader
	at   int
	item []byte
}

// fields calls read for each field of a message of size bytes; -1 means until the
// stream ends. read consumes or skips the field.
func (s *protoStream) fields(size int, read func(number protowire.Number, size int) error) error {
	for end := s.at + size; size < 0 || s.at < end; {
		tag, err := s.varint()
		if size < 0 && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if kind != protowire.BytesType {
			return fmt.Errorf("field %d is of wire type %d: %w", number, kind, errNotProtobuf)
		}
		length, err := s.varint()
		if err != nil {
			return err
		}
		if length > 1<<32 {
			return fmt.Errorf("field %d has %d bytes: %w", number, length, errNotProtobuf)
		}
		if err := read(number, int(length)); err != nil {
			return err
		}
	}
	return nil
}

func (s *protoStream) varint() (uint64, error) {
	value, err := binary.ReadUvarint(s.r)
	s.at += protowire.SizeVarint(value)
	return value, err
}

func (s *protoStream) skip(size int) error {
	n, err := s.r.Discard(size)
	s.at += n
	return err
}

func (s *protoStream) read(size int) ([]byte, error) {
	if size > mostOfAnObject {
		return nil, fmt.Errorf("an object has %d bytes: %w", size, errNotProtobuf)
	}
	if cap(s.item) < size {
		s.item = make([]byte, size*2)
	}
	n, err := io.ReadFull(s.r, s.item[:size])
	s.at += n
	return s.item[:size], err
}
