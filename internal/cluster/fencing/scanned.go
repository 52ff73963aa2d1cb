package fencing

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scanned answers lists by an index without a cache: it reads all objects of a kind once, and filters them. It is for
// commands that end soon.
type Scanned struct {
	client.Reader
	indexes map[string]client.IndexerFunc
	// read are the objects of each kind that was listed by an index.
	read map[reflect.Type][]runtime.Object
}

// NewScanned returns a reader over the API server.
func NewScanned(live client.Reader) *Scanned {
	return &Scanned{Reader: live, indexes: map[string]client.IndexerFunc{}, read: map[reflect.Type][]runtime.Object{}}
}

// IndexField implements client.FieldIndexer. Two kinds must not share a field with different keys.
func (s *Scanned) IndexField(_ context.Context, _ client.Object, field string, keys client.IndexerFunc) error {
	s.indexes[field] = keys
	return nil
}

// List implements client.Reader.
func (s *Scanned) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.FieldSelector == nil {
		return s.Reader.List(ctx, list, options...)
	}
	asked := o.FieldSelector.Requirements()
	if len(asked) != 1 || s.indexes[asked[0].Field] == nil {
		return s.Reader.List(ctx, list, options...) // the API server selects by the field
	}
	kind := reflect.TypeOf(list)
	if _, known := s.read[kind]; !known {
		all, ok := reflect.New(kind.Elem()).Interface().(client.ObjectList)
		if !ok {
			return fmt.Errorf("%T is no list", list)
		}
		if err := s.Reader.List(ctx, all); err != nil {
			return err
		}
		objects, err := meta.ExtractList(all)
		if err != nil {
			return err
		}
		s.read[kind] = objects
	}
	found := []runtime.Object{}
	for _, object := range s.read[kind] {
		if object, ok := object.(client.Object); ok && slices.Contains(s.indexes[asked[0].Field](object), asked[0].Value) {
			found = append(found, object.DeepCopyObject())
		}
	}
	return meta.SetList(list, found)
}
