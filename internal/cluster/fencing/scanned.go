package fencing

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scanned answers lists by an index without a cache: it reads all objects of a kind in a namespace once, and filters
// them. It is for commands that end soon.
type Scanned struct {
	client.Reader
	// indexes by type of list and field.
	indexes map[string]client.IndexerFunc
	// read are the objects that were listed by an index, by type of list and namespace.
	read map[string][]runtime.Object
}

// NewScanned returns a reader over the API server.
func NewScanned(live client.Reader) *Scanned {
	return &Scanned{Reader: live, indexes: map[string]client.IndexerFunc{}, read: map[string][]runtime.Object{}}
}

// IndexField implements client.FieldIndexer.
func (s *Scanned) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	s.indexes[fmt.Sprintf("%TList %s", o, field)] = keys
	return nil
}

// List implements client.Reader.
func (s *Scanned) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.FieldSelector == nil || len(o.FieldSelector.Requirements()) != 1 {
		return s.Reader.List(ctx, list, options...)
	}
	asked := o.FieldSelector.Requirements()[0]
	keys := s.indexes[fmt.Sprintf("%T %s", list, asked.Field)]
	if keys == nil {
		return s.Reader.List(ctx, list, options...) // the API server selects by the field
	}
	kind := fmt.Sprintf("%T %s", list, o.Namespace)
	if _, known := s.read[kind]; !known {
		if err := s.Reader.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		s.read[kind] = objects
	}
	found := []runtime.Object{}
	for _, object := range s.read[kind] {
		if slices.Contains(keys(object.(client.Object)), asked.Value) {
			found = append(found, object.DeepCopyObject())
		}
	}
	return meta.SetList(list, found)
}
