//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// publishing is a model: one Service is replaced in every form; server pods come, go and are reported late; others
// write over the published objects; the controller crashes between two writes, and its cache may lag.
//
//	3  only addresses are written that Multus reports of a Ready server; at rest, all of them are published,
//	   with the present Service as the owner
//	7  any crash at any step resumes
type publishing struct{ *fixture }

// right are the addresses that may be published now.
func (p *publishing) right() []string {
	service := p.service()
	if service == nil || service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0 {
		return nil
	}
	var addresses []string
	for _, pod := range p.pods() {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.Conditions[0].Status != corev1.ConditionTrue {
			continue
		}
		for _, r := range testkit.Value[[]multus.Reported](p.TB)(multus.ReportedInterfaces(pod.Annotations)) {
			if r.Network == "kube-system/one" && r.Interface == "lhnet1" {
				addresses = append(addresses, r.IPs...)
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

func (p *publishing) pods() []corev1.Pod {
	var list corev1.PodList
	p.Must(p.List(context.Background(), &list))
	return list.Items
}

// restart starts a new leader. Each of its writes is checked.
func (p *publishing) restart() {
	p.fixture.restart()
	p.Client.Before = func(w fakeapi.Write) error {
		right := p.right()
		for _, a := range published(w.Object) {
			must.True(p, w.Verb == "delete" || slices.Contains(right, a), "invariant 3: %s publishes %s, right are %v", w, a, right)
		}
		return nil
	}
}

// objects are Fairlead's: slices and the classic object.
func (p *publishing) objects() []client.Object {
	objects := []client.Object{p.slice("ipv4"), p.slice("ipv6"), p.classic()}
	return slices.DeleteFunc(objects, func(o client.Object) bool { return reflect.ValueOf(o).IsNil() })
}

// checkRest reconciles with an up-to-date cache, and checks what is published.
func (p *publishing) checkRest() {
	p.Client.Cache.Release()
	p.mustReconcile()
	service := p.service()
	if service == nil {
		return // its objects are the garbage collector's
	}
	var bySlice, classic []string
	for _, o := range p.objects() {
		owners := o.GetOwnerReferences()
		must.True(p, len(owners) == 1 && owners[0].UID == service.UID, "%T %s is owned by %+v, the Service is %s", o, o.GetName(), owners, service.UID)
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
	rapid.Check(t, func(t *rapid.T) {
		p := &publishing{newFixture(t, headless())}
		p.restart()
		uids := 0
		address := func() string {
			return rapid.SampledFrom([]string{"192.168.0.3", "192.168.0.4", "fd00::3"}).Draw(t, "address")
		}
		// onPod does something to a pod, if there is one.
		onPod := func(do func(*corev1.Pod)) {
			if pods := p.pods(); len(pods) > 0 {
				do(&pods[rapid.IntRange(0, len(pods)-1).Draw(t, "pod")])
			}
		}
		changePod := func(do func(*corev1.Pod)) { onPod(func(pod *corev1.Pod) { change(p.fixture, pod.Name, do) }) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { uids++ },
			"server comes": func(t *rapid.T) {
				pod := server(fmt.Sprint("share-manager-v-", uids), "", func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(p.Clock.Now()) })
				if rapid.Bool().Draw(t, "is up") {
					reports(address())(pod)
				} else {
					pod.Status.Conditions[0].Status = corev1.ConditionFalse
				}
				p.Must(p.Create(context.Background(), pod))
			},
			"Multus reports": func(*rapid.T) { changePod(func(pod *corev1.Pod) { reports(address())(pod) }) },
			"server is Ready or not": func(t *rapid.T) {
				changePod(func(pod *corev1.Pod) {
					pod.Status.Conditions[0].Status = rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(t, "Ready")
				})
			},
			"server fails": func(*rapid.T) { changePod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }) },
			"server goes":  func(*rapid.T) { onPod(func(pod *corev1.Pod) { p.remove(pod) }) },
			"Service is replaced": func(t *rapid.T) {
				if service := p.service(); service != nil {
					p.remove(service)
				}
				forms := map[string]func(*corev1.Service){"cluster IP": withClusterIP, "selector": withSelector, "headless": func(*corev1.Service) {}}
				if form := forms[rapid.SampledFrom([]string{"headless", "headless", "cluster IP", "selector", "none"}).Draw(t, "form")]; form != nil {
					p.Must(p.Create(context.Background(), headless(form, func(s *corev1.Service) { s.UID = types.UID(fmt.Sprint("uid-", uids)) })))
				}
			},
			"others delete an object": func(t *rapid.T) {
				if objects := p.objects(); len(objects) > 0 {
					p.remove(rapid.SampledFrom(objects).Draw(t, "object"))
					p.Client.Cache.Release()
				}
			},
			"others change all objects": func(*rapid.T) {
				p.Pass(overwrittenGap + time.Second) // or Fairlead stands down
				for _, o := range p.objects() {
					switch o := o.(type) {
					case *discoveryv1.EndpointSlice:
						o.Endpoints = nil
					case *corev1.Endpoints:
						o.Subsets = nil
					}
					p.Must(p.Update(context.Background(), o))
				}
			},
			"time passes":                         func(*rapid.T) { p.Pass(time.Second) },
			"controller works":                    func(*rapid.T) { p.checkRest() },
			"controller works with a stale cache": func(*rapid.T) { _, _ = p.reconcile() },
			"cache stops": func(*rapid.T) {
				p.Client.Cache.Release()
				for _, o := range p.objects() {
					p.Must(p.Client.Cache.Hold(context.Background(), o))
				}
			},
			"controller crashes": func(t *rapid.T) {
				p.Client.CrashAt(rapid.IntRange(0, 2).Draw(t, "writes from now"), rapid.Bool().Draw(t, "done"))
				_, err := p.reconcile()
				must.True(t, err == nil || errors.Is(err, fakeapi.ErrCrashed), "%v", err)
				p.restart()
			},
		})
		p.checkRest()
	})
}
