package fencing

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Buckets saves memory in a cache with indexes of many values: a cache keeps a set of some 400 bytes for each value. Here
// values with one hash share a set, and List drops the objects with other values.
type Buckets struct {
	client.Reader
	// fields are the indexes by type of list and field, since kinds may share the name of a field.
	fields map[string]client.IndexerFunc
	cache  client.FieldIndexer
}

// bucketCount gives about six objects per bucket with 100,000 objects.
const bucketCount = 1 << 14

// NewBuckets adds indexes to a cache.
func NewBuckets(objects client.Reader, indexer client.FieldIndexer) *Buckets {
	return &Buckets{Reader: objects, fields: map[string]client.IndexerFunc{}, cache: indexer}
}

// IndexField implements client.FieldIndexer.
func (b *Buckets) IndexField(ctx context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	b.fields[fmt.Sprintf("%TList %s", o, field)] = keys
	return b.cache.IndexField(ctx, o, field, func(o client.Object) (buckets []string) {
		for _, key := range keys(o) {
			buckets = append(buckets, bucket(key))
		}
		slices.Sort(buckets)
		return slices.Compact(buckets)
	})
}

func bucket(key string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return strconv.FormatUint(uint64(hash.Sum32()%bucketCount), 16)
}

// List implements client.Reader.
func (b *Buckets) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.FieldSelector == nil || len(o.FieldSelector.Requirements()) != 1 {
		return b.Reader.List(ctx, list, options...)
	}
	asked := o.FieldSelector.Requirements()[0]
	keys, ok := b.fields[fmt.Sprintf("%T %s", list, asked.Field)]
	if !ok {
		return b.Reader.List(ctx, list, options...)
	}
	client.MatchingFields{asked.Field: bucket(asked.Value)}.ApplyToList(&o)
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	client.UnsafeDisableDeepCopy.ApplyToList(&o)
	if err := b.Reader.List(ctx, list, &o); err != nil {
		return err
	}
	var found []runtime.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok && slices.Contains(keys(o), asked.Value) {
			if !shared {
				item = item.DeepCopyObject()
			}
			found = append(found, item)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return meta.SetList(list, found)
}
