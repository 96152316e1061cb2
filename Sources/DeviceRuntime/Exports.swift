// Content, triggers, settings and routes are part of what this library offers.
@_exported public import NotificationCore

/// The same as `NotificationCenter`, for files that import Foundation too, which has another class of that name.
public typealias UserNotificationCenter = NotificationCenter
