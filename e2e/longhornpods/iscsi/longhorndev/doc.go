// Package longhorndev replaces the package of this name of Longhorn's go-iscsi-helper,
// for kernels without iSCSI: a volume's device is a loop device, whose file is a file
// in FUSE, which reads and writes over the engine's socket as tgt does.
//
// The engine serves the FUSE file; a process beside it, its holder, keeps the loop device
// open. No process sees the mount: it is detached as soon as the file is open.
//
//   - /dev/longhorn/VOLUME is a node of the loop device, made in the engine's mount
//     namespace: where the pod has the node's /dev, the node has it.
//   - The engine stops: the holder closes the device, which writes what is cached, and the
//     kernel detaches it. A mounted device is detached when it is unmounted.
//   - The engine is killed: the device has I/O errors at once, and is detached when no process
//     has it open. Its node stays until the volume's next engine starts.
//   - The engine must not use the device that it serves. An engine that is killed meanwhile
//     would wait for itself, and no signal would end it.
//   - There are no discards: a loop device has one call for discards and for writing zeros,
//     and a discard may show older data of a snapshot.
package longhorndev
