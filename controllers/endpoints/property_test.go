//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// The model below has one Service that is replaced in every form, and server
// pods that come, go and are reported late; others write over what is published;
// the controller crashes between any two of its writes, and sees what it has
// written itself through a cache that may be behind.
//
//	3  nothing is ever written that Multus did not report of a Ready server, and in
//	   the end all that it did is published, of the Service that is there now
//	7  any crash at any step resumes
type publishing struct {
	*fixture
	uids int
	// lives is how many writes there are before the controller crashes; -1 is none.
	lives int
	stale map[client.ObjectKey]client.Object
}

var errDied = errors.New("the controller has died")

// right are the addresses that may be published now, as the API shows its pods.
func (p *publishing) right() []string {
	service := get[corev1.Service](p.fixture, "v")
	if service == nil || service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0 {
		return nil
	}
	var list corev1.PodList
	p.must(p.List(context.Background(), &list))
	var addresses []string
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodRunning || len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Status != corev1.ConditionTrue {
			continue
		}
		reported, err := storage.ReportedInterfaces(pod.Annotations)
		p.must(err)
		for _, r := range reported {
			if r.Network == "kube-system/one" && r.Interface == "lhnet1" {
				addresses = append(addresses, r.IPs...)
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// write stands between the controller and every write of its.
func (p *publishing) write(o client.Object, do func() error) error {
	if p.lives == 0 {
		return errDied
	}
	right := p.right()
	for _, a := range published(o) {
		if !slices.Contains(right, a) {
			p.Fatalf("invariant 3: %s is published in %T %s, right are %v", a, o, o.GetName(), right)
		}
	}
	if err := do(); err != nil {
		return err
	}
	if p.lives--; p.lives == 0 {
		return errDied // done, without an answer
	}
	return nil
}

// published are the addresses in a slice, or in a classic object.
func published(o client.Object) []string {
	var addresses []string
	switch o := o.(type) {
	case *discoveryv1.EndpointSlice:
		for _, e := range o.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
	case *corev1.Endpoints:
		addresses = addressesOf(o)
	}
	return addresses
}

func (p *publishing) objects() []client.Object {
	var objects []client.Object
	for _, family := range []string{"ipv4", "ipv6"} {
		if s := p.slice(family); s != nil {
			objects = append(objects, s)
		}
	}
	if e := p.classic(); e != nil {
		objects = append(objects, e)
	}
	return objects
}

func (p *publishing) remember() {
	p.stale = map[client.ObjectKey]client.Object{}
	for _, o := range p.objects() {
		p.stale[client.ObjectKeyFromObject(o)] = o
	}
}

// comeToRest reconciles with a cache that is up to date, and holds what is published.
func (p *publishing) comeToRest() {
	p.lives, p.stale = -1, nil
	p.mustReconcile()
	service := get[corev1.Service](p.fixture, "v")
	if service == nil {
		return // what it owned is the garbage collector's
	}
	var bySlice, classic []string
	for _, o := range p.objects() {
		if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != service.UID {
			p.Fatalf("%T %s is owned by %+v, the Service is %s", o, o.GetName(), owners, service.UID)
		}
		if _, ok := o.(*corev1.Endpoints); ok {
			classic = published(o)
		} else {
			bySlice = append(bySlice, published(o)...)
		}
	}
	slices.Sort(bySlice)
	slices.Sort(classic)
	if right := p.right(); !slices.Equal(bySlice, right) || !slices.Equal(classic, right) {
		p.Fatalf("invariant 3: slices have %v, the classic object %v, right are %v", bySlice, classic, right)
	}
}

func TestPublishedAddressesAreAlwaysRight(t *testing.T) {
	s := scheme(t)
	rapid.Check(t, func(t *rapid.T) {
		p := &publishing{fixture: newFixture(t, s, headless()), lives: -1}
		p.funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return p.write(o, func() error { return c.Create(ctx, o, opts...) })
		}
		p.funcs.Update = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return p.write(o, func() error { return c.Update(ctx, o, opts...) })
		}
		p.funcs.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return p.write(&corev1.Pod{}, func() error { return c.Delete(ctx, o, opts...) })
		}
		p.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, o, opts...); err != nil || p.stale == nil {
				return err
			}
			switch old := p.stale[key].(type) {
			case *discoveryv1.EndpointSlice:
				if s, ok := o.(*discoveryv1.EndpointSlice); ok {
					old.DeepCopyInto(s)
				}
			case *corev1.Endpoints:
				if e, ok := o.(*corev1.Endpoints); ok {
					old.DeepCopyInto(e)
				}
			}
			return nil
		}
		pod := func(change func(*corev1.Pod)) {
			var list corev1.PodList
			p.must(p.List(context.Background(), &list))
			if len(list.Items) > 0 {
				pod := &list.Items[rapid.IntRange(0, len(list.Items)-1).Draw(t, "pod")]
				change(pod)
				p.must(p.Update(context.Background(), pod))
			}
		}
		// The fake client keeps the status to itself unless asked for it.
		status := func(change func(*corev1.Pod)) {
			pod(func(pod *corev1.Pod) {
				change(pod)
				p.must(p.Status().Update(context.Background(), pod))
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { p.uids++ },
			"a server comes": func(t *rapid.T) {
				pod := server(fmt.Sprint("share-manager-v-", p.uids), "", func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(p.clock.Now()) })
				if rapid.Bool().Draw(t, "is up") {
					pod.Annotations[storage.NetworkStatusAnnotation] = reports(rapid.SampledFrom([]string{"192.168.0.3", "192.168.0.4", "fd00::3"}).Draw(t, "address"))
				} else {
					pod.Status.Conditions[0].Status = corev1.ConditionFalse
				}
				p.must(p.Create(context.Background(), pod))
			},
			"Multus reports": func(t *rapid.T) {
				pod(func(pod *corev1.Pod) {
					pod.Annotations[storage.NetworkStatusAnnotation] = reports(rapid.SampledFrom([]string{"192.168.0.3", "192.168.0.4", "fd00::3"}).Draw(t, "address"))
				})
			},
			"a server is Ready or not": func(t *rapid.T) {
				status(func(pod *corev1.Pod) {
					pod.Status.Conditions[0].Status = rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(t, "Ready")
				})
			},
			"a server ends": func(*rapid.T) { status(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }) },
			"a server goes": func(t *rapid.T) {
				var list corev1.PodList
				p.must(p.List(context.Background(), &list))
				if len(list.Items) > 0 {
					p.must(p.Client.Delete(context.Background(), &list.Items[rapid.IntRange(0, len(list.Items)-1).Draw(t, "pod")]))
				}
			},
			"the Service is replaced": func(t *rapid.T) {
				if service := get[corev1.Service](p.fixture, "v"); service != nil {
					p.must(p.Client.Delete(context.Background(), service))
				}
				form := rapid.SampledFrom([]string{"headless", "headless", "cluster IP", "selector", "none"}).Draw(t, "form")
				if form == "none" {
					return
				}
				p.must(p.Client.Create(context.Background(), headless(func(s *corev1.Service) {
					s.UID = types.UID(fmt.Sprint("uid-", p.uids))
					switch form {
					case "cluster IP":
						s.Spec.ClusterIP = "10.43.0.1"
					case "selector":
						s.Spec.Selector = map[string]string{"a": "b"}
					}
				})))
			},
			"others delete what is published": func(t *rapid.T) {
				if objects := p.objects(); len(objects) > 0 {
					p.must(p.Client.Delete(context.Background(), rapid.SampledFrom(objects).Draw(t, "object")))
					p.stale = nil
				}
			},
			"others change what is published": func(t *rapid.T) {
				p.clock.SetTime(p.clock.Now().Add(overwrittenGap + time.Second)) // or Fairlead stands down
				for _, o := range p.objects() {
					switch o := o.(type) {
					case *discoveryv1.EndpointSlice:
						o.Endpoints = nil
					case *corev1.Endpoints:
						o.Subsets = nil
					}
					p.must(p.Client.Update(context.Background(), o))
				}
			},
			"time passes": func(*rapid.T) { p.clock.SetTime(p.clock.Now().Add(time.Second)) },
			"fairlead":    func(*rapid.T) { p.comeToRest() },
			"the cache stops to see what is published": func(*rapid.T) { p.remember() },
			"fairlead, whatever the cache shows":       func(*rapid.T) { _, _ = p.reconcile() },
			"fairlead crashes": func(t *rapid.T) {
				p.lives = rapid.IntRange(0, 3).Draw(t, "writes from now")
				if _, err := p.reconcile(); err != nil && !errors.Is(err, errDied) {
					t.Fatalf("%v", err)
				}
				p.lives, p.stale = -1, nil
				p.restart()
			},
		})
		p.comeToRest()
	})
}
