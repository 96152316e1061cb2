import JSONCore

extension DownstreamReader {
  /// A string field.
  func string(_ field: DownstreamField, in text: UnsafeRawBufferPointer) throws(Refusal) -> JSONString? {
    guard let member = member(field) else { return nil }
    guard let place = member.string else { throw wrongType(field, "java.lang.String", member, in: text) }
    return place
  }

  /// A boolean field; false when left out.
  func flag(_ field: DownstreamField, in text: UnsafeRawBufferPointer) throws(Refusal) -> Bool {
    guard let member = member(field) else { return false }
    guard member.kind.isBoolean else { throw wrongType(field, "java.lang.Boolean", member, in: text) }
    return member.kind == .true
  }

  func priority(in text: UnsafeRawBufferPointer) throws(Refusal) -> Priority? {
    guard let place = try string(.priority, in: text) else { return nil }
    if place.equals("high", in: text) { return .high }
    if place.equals("normal", in: text) { return .normal }
    throw invalid("priority", "must be \"normal\" or \"high\"", place, in: text)
  }

  func timeToLive(in text: UnsafeRawBufferPointer) throws(Refusal) -> Int {
    guard let member = member(.timeToLive) else { return limits.timeToLiveSecondsMax }
    let digits: UnsafeRawBufferPointer
    switch member.kind {
    case .number:
      digits = member.value.raw(in: text)
    case .string where limits.coerceNumericStrings:
      guard let place = member.string, JSONNumber.integer(place.raw(in: text)) != nil else {
        throw wrongType(.timeToLive, "java.lang.Number", member, in: text)
      }
      digits = place.raw(in: text)
    default:
      throw wrongType(.timeToLive, "java.lang.Number", member, in: text)
    }
    return try TimeToLive.seconds(digits, limits: limits)
  }

  func target(in text: UnsafeRawBufferPointer) throws(Refusal) -> DraftTarget {
    var to = try string(.to, in: text)
    if form == .legacyHTTP, to == nil { to = try string(.notificationKey, in: text) }
    let condition = try string(.condition, in: text)
    let tokens = member(.registrationIDs)
    if let tokens, form == .stream {
      _ = tokens
      throw Refusal(
        .invalidParameter, "InvalidJson: Field \"registration_ids\" is not supported over XMPP",
        field: "registration_ids")
    }
    let given = [to?.isEmpty == false, condition?.isEmpty == false, tokens != nil]
    guard given.count(where: { $0 }) <= 1 else {
      throw Refusal(.invalidParameter, "InvalidJson: Only one target field may be used", field: "to")
    }
    if let tokens {
      guard tokens.kind == .array else { throw wrongType(.registrationIDs, "array", tokens, in: text) }
      return .tokens(tokens.value)
    }
    if let condition, !condition.isEmpty {
      return .condition(try self.condition(condition, in: text))
    }
    guard let to, !to.isEmpty else {
      throw Refusal(.missingTarget, "InvalidJson: Missing Required Field: to", field: "to")
    }
    switch to.lent(in: text, { Target.Kind($0, limits: limits) }) {
    case .token: return .token(to)
    case .topic: return .topic(to)
    case .user: return .user(to)
    case .group: return .group(to)
    case nil:
      let shown = to.lent(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
      throw Refusal(.malformedToken, "Invalid token on 'to' field: \(shown)", field: "to")
    }
  }

  private func condition(
    _ place: JSONString, in text: UnsafeRawBufferPointer
  ) throws(Refusal) -> TopicCondition {
    let parsed = place.lent(in: text) { bytes -> Result<TopicCondition, ConditionFault> in
      do throws(ConditionFault) {
        return .success(
          try TopicCondition(
            parsing: bytes, topicsMax: limits.conditionTopicsMax, depthMax: limits.conditionDepthMax))
      } catch {
        return .failure(error)
      }
    }
    switch parsed {
    case .success(let condition): return condition
    case .failure(let fault):
      throw Refusal(.invalidParameter, "InvalidJson: Invalid condition: \(fault)", field: "condition")
    }
  }

  func notification(
    in text: UnsafeRawBufferPointer
  ) throws(Refusal) -> (range: JSONRange?, bytes: Int, badgeStep: Int) {
    guard let member = member(.notification) else { return (nil, 0, 0) }
    guard member.kind == .object else { throw wrongType(.notification, "object", member, in: text) }
    let children = document.children(of: found[Int(DownstreamField.notification.rawValue)])
    var bytes = 0
    var badgeStep = 0
    var index = children.lowerBound
    while index < children.upperBound {
      let key = document.members[index]
      bytes += key.name.decodedCount + key.decodedCount
      if let type = PayloadRules.notificationType(of: key.name, in: text), !type.admits(key.kind) {
        let name = key.name.string(in: text)
        let shown = Echo.bounded(key.value.raw(in: text), limits.echoCharactersMax)
        throw Refusal(
          .invalidJSON,
          "InvalidJson: JSON_TYPE_ERROR : Field \"notification.\(name)\" must be a JSON \(type.rawValue): \(shown)",
          field: "notification.\(name)")
      }
      if let badge = key.string, badge.decodedCount > 1, key.name.equals("badge", in: text) {
        badgeStep = badge.lent(in: text) { NotificationBadge.step($0) }
      }
      index = key.next
    }
    return (member.value, bytes, badgeStep)
  }

  func data(in text: UnsafeRawBufferPointer) throws(Refusal) -> PayloadRules.DataFacts {
    guard let member = member(.data) else { return PayloadRules.DataFacts() }
    guard member.kind == .object else { throw wrongType(.data, "object", member, in: text) }
    let children = document.children(of: found[Int(DownstreamField.data.rawValue)])
    let facts = PayloadRules.data(children, of: document, in: text, reserved: .legacy)
    if let name = facts.reservedName {
      let shown = name.lent(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
      throw Refusal(.invalidDataKey, "InvalidDataKey: \(shown)", field: "data")
    }
    return facts
  }

  func wrongType(
    _ field: DownstreamField, _ type: StaticString, _ member: JSONMember, in text: UnsafeRawBufferPointer
  ) -> Refusal {
    let raw = member.string?.raw(in: text) ?? member.value.raw(in: text)
    let shown = Echo.bounded(raw, limits.echoCharactersMax)
    return Refusal(
      .invalidJSON, "InvalidJson: JSON_TYPE_ERROR : Field \"\(field.name)\" must be a JSON \(type): \(shown)",
      field: "\(field.name)")
  }

  func invalid(
    _ field: String, _ rule: String, _ place: JSONString, in text: UnsafeRawBufferPointer
  ) -> Refusal {
    let shown = place.lent(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
    return Refusal(
      .invalidParameter, "InvalidJson: Invalid value (\(shown)) for \"\(field)\": \(rule)", field: field)
  }
}

/// The rule for `time_to_live`.
enum TimeToLive {
  /// - Parameter digits: A JSON number's text.
  /// - Throws: ``Refusal/Reason/invalidTTL`` unless it is an integer of 0 to the maximum.
  static func seconds(_ digits: UnsafeRawBufferPointer, limits: Limits) throws(Refusal) -> Int {
    guard let seconds = JSONNumber.integer(digits), seconds >= 0, seconds <= limits.timeToLiveSecondsMax
    else {
      let shown = Echo.bounded(digits, limits.echoCharactersMax)
      throw Refusal(
        .invalidTTL,
        """
        InvalidJson: INVALID_TTL : Invalid value (\(shown)) for "time_to_live": must be between 0 and \
        \(limits.timeToLiveSecondsMax)
        """, field: "time_to_live")
    }
    return Int(seconds)
  }
}
