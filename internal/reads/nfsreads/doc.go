// Package nfsreads reads NFSServices and the attachments of their volumes. Drivers.Attachment says what a VolumeAttachment means
// to the controllers, the webhook and the command line alike.
package nfsreads
